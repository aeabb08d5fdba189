// Puts the other ends of actions between two ranks into the lists of those.
#include "FarEnds.h"

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/Simulation.h"
#include "ppcc/Basic/Diagnostics/Expand.h"

using namespace ppcc;

namespace {

class FarEnds {
public:
  FarEnds(sema::Evaluator &evaluator, DiagnosticEngine &diags, Program &program)
      : evaluator(evaluator), diags(diags), program(program) {}

  /// Finds the actions, and gives them their peers.
  bool find() {
    for (RankId rank : program.ranks())
      for (ActionId row : program.rows(rank))
        if (program.kindOf(row).hasFarEnd()) {
          if (!enter(row, rank))
            return false;
          ends.push_back({row});
        }
    return true;
  }
  bool empty() const { return ends.empty(); }

  /// Merges them into the lists of their ranks, by the times of a run in which
  /// nobody waits for them; where that does not end they come last, and the
  /// checks say why.
  void place(const Program &priced) {
    Analyses analyses(priced);
    std::optional<Simulation> run;
    if (analyses.index().fits() && analyses.durations().fits(priced, 0))
      run = simulate(priced, analyses.index(), analyses.durations());
    for (End &end : ends)
      end.at = run ? run->starts[end.row.value] : 0;
    llvm::stable_sort(ends,
                      [](const End &a, const End &b) { return a.at < b.at; });
    std::vector<std::vector<End>> coming(program.ranksBegun());
    for (auto [order, end] : llvm::enumerate(ends)) {
      end.order = order;
      orderOf[end.row.value] = order;
      coming[program.otherEnd(program[end.row]).value].push_back(end);
    }
    Rows result;
    result.reserve(program.size() + ends.size());
    for (RankId rank : program.ranks()) {
      result.beginRank();
      if (run)
        choosePlaces(rank, *run, coming[rank.value]);
      auto next = coming[rank.value].begin(), last = coming[rank.value].end();
      auto append = [&] {
        Action row = program[next++->row];
        row.joined = false;
        result.append(row);
      };
      for (RowRange item : program.items(rank)) {
        while (next != last && next->place <= item.from.value)
          append();
        for (ActionId row : item)
          result.append(program[row]);
      }
      while (next != last)
        append();
    }
    program = program.withRows(std::move(result));
  }

private:
  struct End {
    ActionId row;
    Time at = 0;
    size_t order = 0;            ///< By time, then by rank.
    uint32_t place = UINT32_MAX; ///< The row that it is put in front of.
  };

  /// Puts those that come to a rank ahead of what it computes beyond their
  /// start, and between its own of the same lane by the order of all.
  void choosePlaces(RankId rank, const Simulation &run,
                    std::vector<End> &coming) const {
    struct Own {
      size_t order;
      uint32_t row;
    };
    std::map<uint8_t, std::vector<Own>> ownOf; // By lane.
    for (ActionId row : program.rows(rank))
      if (auto own = orderOf.find(row.value); own != orderOf.end())
        ownOf[program.kindOf(row).lane].push_back({own->second, row.value});
    auto items = program.items(rank);
    auto item = items.begin();
    for (End &end : coming) {
      // All of a group end together.
      while (item != items.end() &&
             !(program.kindOf((*item).from).occupiesRank() &&
               run.ends[(*item).from.value] > end.at))
        ++item;
      end.place = item == items.end() ? UINT32_MAX : (*item).from.value;
      ArrayRef<Own> own = ownOf[program.kindOf(end.row).lane];
      auto *later = llvm::partition_point(
          own, [&](const Own &one) { return one.order < end.order; });
      if (later != own.begin())
        end.place = std::max(end.place, later[-1].row + 1);
      if (later != own.end())
        end.place = std::min(end.place, later->row);
    }
    llvm::stable_sort(
        coming, [](const End &a, const End &b) { return a.place < b.place; });
  }

  bool enter(ActionId row, RankId rank) {
    Action action = program[row];
    auto [known, isNew] =
        ranks.try_emplace({action.kind.value, rank.value}, std::nullopt);
    if (isNew)
      known->second = otherRank(action.kind, rank);
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
      return diags.report<diag::NoFarEnd>(costsOf(action.kind).otherRank->range,
                                          cell(program, action), rank.value,
                                          other, why);
    }
    action.peer = StageId(host - hosts.begin());
    program.editRows().set(row, action);
    return true;
  }

  const sema::KindCosts &costsOf(KindId kind) const {
    return *findBy(evaluator.checkedModule().kindCosts, kind,
                   &sema::KindCosts::kind);
  }

  std::optional<int64_t> otherRank(KindId kind, RankId rank) {
    const sema::KindCosts &of = costsOf(kind);
    evaluator.clearFailed();
    sema::Evaluator::Frame frame(evaluator, of.numLocals);
    evaluator.local(0) = {.i = rank.value};
    int64_t value = evaluator.evalInt(of.otherRank);
    return evaluator.failed() ? std::nullopt : std::optional(value);
  }

  sema::Evaluator &evaluator;
  DiagnosticEngine &diags;
  Program &program;
  std::vector<End> ends;
  DenseMap<uint32_t, size_t> orderOf; ///< By row, of those in `ends`.
  std::map<std::pair<uint32_t, uint32_t>, std::optional<int64_t>>
      ranks; ///< By kind and rank.
};

} // namespace

bool ppcc::placeFarEnds(function_ref<bool(Program &)> price,
                        sema::Evaluator &evaluator, DiagnosticEngine &diags,
                        Program &program) {
  if (llvm::none_of(program.kinds().declaredRows(),
                    [](const KindInfo &info) { return info.hasFarEnd(); }))
    return true;
  FarEnds ends(evaluator, diags, program);
  if (!ends.find())
    return false;
  if (ends.empty())
    return true;
  Program priced = program;
  if (!price(priced))
    return false;
  ends.place(priced);
  return true;
}
