// Puts the other ends of actions between two ranks into the lists of those.
#include "Steps.h"

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/Index/Dependences.h"
#include "ppcc/Analysis/Run/Inboxes.h"
#include "ppcc/Basic/Diagnostics/Expand.h"

using namespace ppcc;

namespace {

struct PeerSides {
  sema::Evaluator &evaluator;
  DiagnosticEngine &diags;
  Program &program;

  /// Finds the actions, and gives them their peers.
  bool find() {
    for (RankId rank : program.ranks())
      for (ActionId row : program.rows(rank))
        if (program.kindOf(row).isMove()) {
          if (!enter(row, rank))
            return false;
          ++count;
        }
    return true;
  }
  bool empty() const { return count == 0; }

  /// Runs the items of all ranks in one order that their data allows, early
  /// ones first, and puts each peer after all that its rank has run by
  /// then: all lists follow that order. What cannot run comes last; the checks
  /// say why.
  void place(const Program &costed) {
    Analyses analyses(costed);
    const ProgramIndex &index = analyses.index();
    lists.resize(program.ranksBegun());
    std::optional<Inboxes> inboxes;
    if (index.fits())
      runAll(inboxes.emplace(costed, index, &KindInfo::isCollective), analyses);
    for (RankId rank : program.ranks())
      append(rank, {inboxes ? inboxes->begin(rank) : program.begin(rank),
                    program.end(rank)});
    Rows result;
    result.reserve(program.size() + count);
    for (RankId rank : program.ranks()) {
      result.beginRank();
      for (ActionId row : lists[rank.value]) {
        Action action = program[row];
        action.joined &= !program.isPeerSide(action, rank);
        result.append(action);
      }
    }
    program = program.withRows(std::move(result));
  }

  void runAll(Inboxes &inboxes, const Analyses &analyses) {
    const ProgramIndex &index = inboxes.index;
    std::optional<Simulation> run;
    if (analyses.durations().fits(program, 0))
      run = simulate(inboxes.program, index, analyses.durations());
    // When its next item ends or, beside what the rank computes, begins.
    using Next = std::tuple<Time, bool, RankId>;
    std::priority_queue<Next, std::vector<Next>, std::greater<>> ready;
    auto wake = [&](RankId rank) {
      if (!inboxes.isReady(rank))
        return;
      ActionId row = inboxes.begin(rank);
      bool isAsync = !program.kindOf(row).occupiesRank();
      ready.push({run ? (isAsync ? run->starts : run->ends)[row.value] : 0,
                  isAsync, rank});
    };
    llvm::for_each(program.ranks(), wake);
    while (true) {
      if (ready.empty()) {
        auto freed = inboxes.release();
        if (!freed)
          return;
        wake(*freed);
      }
      RankId first = std::get<RankId>(ready.top());
      ready.pop();
      for (RankId rank : inboxes.together(first)) {
        RowRange item{inboxes.begin(rank), inboxes.end(rank)};
        append(rank, item);
        for (ActionId row : item) {
          Action action = program[row];
          forEachReader(program, index, action,
                        [&](uint8_t slotBit, StageId reader, RankId to) {
                          if (inboxes.deliver(action, slotBit, reader, to, 0))
                            wake(to);
                        });
        }
        inboxes.advance(rank);
        wake(rank);
      }
    }
  }

  /// Appends rows to the list of their rank, and their far ends to others.
  void append(RankId rank, RowRange rows) {
    for (ActionId row : rows) {
      lists[rank.value].push_back(row);
      if (program.kindOf(row).isMove())
        lists[program.peerRank(program[row]).value].push_back(row);
    }
  }

  bool enter(ActionId row, RankId rank) {
    Action action = program[row];
    auto [known, isNew] =
        ranks.try_emplace({action.kind.value, rank.value}, std::nullopt);
    if (isNew)
      known->second = evaluatePeerRank(action.kind, rank);
    if (!known->second)
      return false;
    int64_t other = *known->second;
    const auto &hosts = program.pipe(action.pipe).rankOfStage;
    auto host =
        llvm::find_if(hosts, [&](RankId host) { return host.value == other; });
    if (other == rank.value || host == hosts.end()) {
      std::string why =
          other == rank.value ? "the same"
          : other < 0 || other >= program.numRanks()
              ? fmt::format("and there are {} ranks", program.numRanks())
              : fmt::format("which hosts no stage of pipe `{}`",
                            program.pipe(action.pipe).name);
      return diags.report<diag::NoPeerRank>(
          costsOf(action.kind).peerRankExpr->range, cell(program, action),
          rank.value, other, why);
    }
    action.peer = StageId(host - hosts.begin());
    program.editRows().set(row, action);
    return true;
  }

  const sema::KindCosts &costsOf(KindId kind) const {
    return *findBy(evaluator.module.kindCosts, kind, &sema::KindCosts::kind);
  }

  std::optional<int64_t> evaluatePeerRank(KindId kind, RankId rank) {
    const sema::KindCosts &of = costsOf(kind);
    evaluator.clearFailed();
    sema::Evaluator::Frame frame(evaluator, of.numLocals);
    evaluator.local(0) = {.i = rank.value};
    int64_t value = evaluator.evalInt(of.peerRankExpr);
    return evaluator.failed() ? std::nullopt : std::optional(value);
  }

  size_t count = 0;
  std::vector<std::vector<ActionId>> lists{}; ///< By rank, in their new order.
  std::map<std::pair<uint32_t, uint32_t>, std::optional<int64_t>>
      ranks{}; ///< By kind and rank.
};

} // namespace

bool ppcc::insertPeerSides(function_ref<bool(Program &)> addCosts,
                           sema::Evaluator &evaluator, DiagnosticEngine &diags,
                           Program &program) {
  if (llvm::none_of(program.kinds().declaredRows(),
                    [](const KindInfo &info) { return info.isMove(); }))
    return true;
  PeerSides ends{evaluator, diags, program};
  if (!ends.find())
    return false;
  if (ends.empty())
    return true;
  Program costed = program;
  if (!addCosts(costed))
    return false;
  ends.place(costed);
  return true;
}
