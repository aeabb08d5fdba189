// Checks that all members of a collective join it, in one order on every rank.
#include "Report.h"
#include "ppcc/Analysis/WaitCycle.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

class CollectiveChecker : IndexedJudge {
public:
  using IndexedJudge::IndexedJudge;

  void check() {
    size_t before = context.diags.errorCount();
    for (uint32_t meeting = 0; meeting != rules.numMeetings() && !isSaturated();
         ++meeting)
      checkMembers(meeting);
    // The order of a meeting that some rank misses says nothing.
    if (context.diags.errorCount() == before)
      for (uint32_t lane = 0; lane != program.kinds().lanes().size(); ++lane)
        checkOrder(lane);
  }

private:
  /// The ranks that have to join, ascending; nothing after a report.
  std::optional<std::vector<RankId>> wantedRanks(ActionId row) {
    Action action = program[row];
    const KindInfo &info = program.kindOf(action);
    const Pipe &own = program.pipe(action.pipe);
    std::vector<RankId> ranks;
    if (info.meeting == Meeting::All) {
      llvm::append_range(ranks, program.ranks());
    } else if (info.hasFarEnd()) {
      ranks = {own.rankOfStage[action.stage.value], program.otherEnd(action)};
    } else if (info.meeting == Meeting::Replicas) {
      for (const Pipe &pipe : program.pipes())
        if (action.stage.value < pipe.numStages())
          ranks.push_back(pipe.rankOfStage[action.stage.value]);
    } else {
      bool isMember = false;
      for (int64_t stage : info.stages) {
        if (stage < 0)
          stage += own.numStages();
        if (stage < 0 || stage >= own.numStages())
          continue; // No pipe of this many stages has it.
        isMember |= stage == action.stage.value;
        ranks.push_back(own.rankOfStage[stage]);
      }
      if (!isMember) {
        report<diag::NotAMember>(row, cell(action));
        return std::nullopt;
      }
    }
    llvm::sort(ranks);
    ranks.erase(llvm::unique(ranks), ranks.end());
    return ranks;
  }

  void checkMembers(uint32_t meeting) {
    auto members = rules.members(meeting);
    auto rankOf = [&](ActionId row) { return program.rankOf(row); };
    auto wanted = wantedRanks(members.front());
    if (!wanted)
      return;
    for (RankId rank : *wanted) {
      if (std::ranges::binary_search(members, rank, {}, rankOf))
        continue;
      report<diag::CollectiveMissing>(members.front(), rank.value,
                                      cell(members.front()))
          .note({}, "rank {} runs it", rankOf(members.front()).value);
      return;
    }
    for (ActionId row : members.drop_front())
      if (!wantedRanks(row))
        return;
  }

  /// The rows of a lane that meet, by rank.
  std::vector<std::vector<ActionId>> rowsOf(uint32_t lane) const {
    std::vector<std::vector<ActionId>> rows(program.ranksBegun());
    for (RankId rank : program.ranks())
      for (ActionId row : program.rows(rank))
        if (const KindInfo &info = program.kindOf(row);
            info.meets() && info.lane == lane && rules.meetingOf(row))
          rows[rank.value].push_back(row);
    return rows;
  }

  /// Lets the ranks join the meetings of a lane one after the other, as far as
  /// they come.
  void checkOrder(uint32_t lane) {
    std::vector<std::vector<ActionId>> rows = rowsOf(lane);
    std::vector<size_t> next(rows.size());
    std::vector<uint32_t> joined(rules.numMeetings());
    SmallVector<uint32_t> ready;
    auto arrive = [&](uint32_t rank) {
      if (next[rank] == rows[rank].size())
        return;
      uint32_t meeting = *rules.meetingOf(rows[rank][next[rank]]);
      if (++joined[meeting] == rules.members(meeting).size())
        ready.push_back(meeting);
    };
    for (uint32_t rank = 0; rank != rows.size(); ++rank)
      arrive(rank);
    while (!ready.empty())
      for (ActionId member : rules.members(ready.pop_back_val())) {
        uint32_t rank = program.rankOf(member).value;
        ++next[rank];
        arrive(rank);
      }

    std::vector<Wait> waits;
    for (uint32_t rank = 0; rank != rows.size(); ++rank)
      if (next[rank] != rows[rank].size())
        for (ActionId member :
             rules.members(*rules.meetingOf(rows[rank][next[rank]])))
          if (uint32_t other = program.rankOf(member).value;
              rows[other][next[other]] != member)
            waits.push_back({rank, other});
    std::vector<uint32_t> circle = shortestCircle(waits);
    if (circle.empty())
      return;
    std::vector<RankId> ranks;
    for (uint32_t wait : circle)
      ranks.push_back(RankId(waits[wait].from));
    auto headOf = [&](RankId rank) {
      return rows[rank.value][next[rank.value]];
    };
    auto builder =
        report<diag::CollectiveOrder>(headOf(ranks.front()), rankList(ranks));
    for (RankId rank : ArrayRef(ranks).take_front(maxHops))
      builder.note(place(headOf(rank)), "rank {} has `{}`{} first", rank.value,
                   cell(headOf(rank)), ofPipe(program[headOf(rank)].pipe));
  }

  const RuleIndex &rules = index.rules();
};

} // namespace

void ppcc::verifyCollectives(const Program &program, PassContext &context) {
  checkIndexed<CollectiveChecker>(program, context);
}
