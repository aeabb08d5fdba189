// Checks that all members of a collective join it, in one order on every rank.
#include "Report.h"
#include "ppcc/Analysis/EventGraph.h"
#include "ppcc/Analysis/WaitCycle.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/IR/Collective.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

class CollectiveChecker : IndexedJudge {
public:
  using IndexedJudge::IndexedJudge;

  void check() {
    size_t before = context.diags.errorCount();
    for (ActionId row : program.rows())
      if (!isMember(row) && !isSaturated())
        report<diag::NotAMember>(row, cell(program[row]));
    for (uint32_t meeting = 0; meeting != rules.numMeetings() && !isSaturated();
         ++meeting)
      checkMembers(meeting);
    // The order of a meeting that some rank misses says nothing.
    if (context.diags.errorCount() == before)
      for (uint32_t lane = 0; lane != program.kinds().lanes().size(); ++lane)
        checkOrder(lane);
  }

private:
  bool isMember(ActionId row) {
    return ppcc::isMember(program.kindOf(row), program.pipe(program[row].pipe),
                          program[row].stage);
  }

  /// The ranks that have to join, ascending.
  std::vector<RankId> wantedRanks(ActionId row) {
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
      for (StageId stage : own.stages())
        if (ppcc::isMember(info, own, stage))
          ranks.push_back(own.rankOfStage[stage.value]);
    }
    llvm::sort(ranks);
    ranks.erase(llvm::unique(ranks), ranks.end());
    return ranks;
  }

  void checkMembers(uint32_t meeting) {
    auto members = rules.members(meeting);
    auto rankOf = [&](ActionId row) { return program.rankOf(row); };
    if (!isMember(members.front()))
      return;
    for (RankId rank : wantedRanks(members.front())) {
      if (std::ranges::binary_search(members, rank, {}, rankOf))
        continue;
      report<diag::CollectiveMissing>(members.front(), rank.value,
                                      cell(members.front()))
          .note({}, "rank {} runs it", rankOf(members.front()).value);
      return;
    }
  }

  /// Lets the ranks join the meetings of a lane one after the other, as far as
  /// they come.
  void checkOrder(uint32_t lane) {
    Rows rows;
    std::vector<ActionId> origins; ///< By row.
    for (RankId rank : program.ranks()) {
      rows.beginRank();
      for (ActionId row : program.rows(rank))
        if (const KindInfo &info = program.kindOf(row);
            info.meets() && info.lane == lane && rules.meetingOf(row)) {
          Action action = program[row];
          action.joined = false;
          rows.append(action);
          origins.push_back(row);
        }
    }
    Program meetings = program.withRows(std::move(rows));
    ProgramIndex index(meetings);
    EventGraph graph(meetings, index, nullptr, {});
    if (graph.run())
      return;
    std::vector<ActionId> heads;
    std::vector<RankId> ranks;
    for (const EventGraph::Block &block : graph.shortestCircle()) {
      heads.push_back(origins[block.blocked.value]);
      ranks.push_back(program.rankOf(heads.back()));
    }
    auto builder =
        report<diag::CollectiveOrder>(heads.front(), rankList(ranks));
    for (ActionId head : ArrayRef(heads).take_front(maxHops))
      builder.note(place(head), "rank {} has `{}`{} first",
                   program.rankOf(head).value, cell(head),
                   ofPipe(program[head].pipe));
  }

  const RuleIndex &rules = index.rules();
};

} // namespace

void ppcc::verifyCollectives(const Program &program, PassContext &context) {
  checkIndexed<CollectiveChecker>(program, context);
}
