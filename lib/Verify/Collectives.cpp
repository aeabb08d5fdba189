// Checks that all members of a collective join it, in one order on every rank.
#include "ProgramCheck.h"
#include "ppcc/Analysis/Run/EventGraph.h"
#include "ppcc/IR/Collective.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

struct CollectiveChecker : IndexedCheck {
  using IndexedCheck::IndexedCheck;

  void check() {
    size_t before = context.diags.errorCount();
    for (ActionId row : program.rows())
      if (!isMember(row) && !isSaturated())
        report<diag::NotAMember>(row, cell(program[row]));
    for (uint32_t collective = 0;
         collective != rules.numCollectives() && !isSaturated(); ++collective)
      checkMembers(collective);
    // The order of a collective that some rank misses says nothing.
    if (context.diags.errorCount() == before)
      for (uint32_t lane = 0; lane != program.kinds().lanes().size(); ++lane)
        checkOrder(lane);
  }

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
    if (info.collective == Collective::All) {
      llvm::append_range(ranks, program.ranks());
    } else if (info.isMove()) {
      ranks = {own.rankOfStage[action.stage.value], program.peerRank(action)};
    } else if (info.collective == Collective::Replicas) {
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

  void checkMembers(uint32_t collective) {
    auto members = rules.members(collective);
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

  /// Lets the ranks join the collectives of a lane one after the other, as far
  /// as they come.
  void checkOrder(uint32_t lane) {
    Rows rows;
    std::vector<ActionId> origins; ///< By row.
    for (RankId rank : program.ranks()) {
      rows.beginRank();
      for (ActionId row : program.rows(rank))
        if (const KindInfo &info = program.kindOf(row);
            info.isCollective() && info.lane == lane &&
            rules.collectiveOf(row)) {
          Action action = program[row];
          action.joined = false;
          rows.append(action);
          origins.push_back(row);
        }
    }
    Program collectives = program.withRows(std::move(rows));
    ProgramIndex index(collectives);
    EventGraph graph(collectives, index, nullptr, {});
    if (graph.run())
      return;
    std::vector<ActionId> heads;
    std::vector<RankId> ranks;
    for (const EventGraph::BlockedAction &block : graph.shortestCycle()) {
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
