// Adds the declared actions that `insert` items of rules ask for.
//
// Algorithm: advice weaving, as in aspect-oriented programming (Kiczales et
// al., ECOOP 1997). For each insertion and rank, one scan notes the anchors and
// the barriers, the rows that the new action must follow or precede. Each
// anchor gets a position: its item, moved by the distance, clamped at the
// barrier. A stable sort and a merge write the new rows.
// Invariant: existing rows keep their order, groups stay whole, and an action
// stays on its side of its anchor. A key (stage and microbatch, stage, or rank)
// has one anchor: the first with `before`, the last with `after`.
// Cost: O(rows + anchors * log anchors) an insertion, plus the evaluation of
// condition and distance at each anchor.
// Example: `insert R before B by 1;` where R must follow F.
//   before: 0F0 0F1 0B0 0B1
//   after:  0F0 0R0 0F1 0R1 0B0 0B1
// `by 2` gives the same: R0 may not pass F0, nor R1 F1.
#include "Sites.h"
#include "Steps.h"
#include "ppcc/IR/Collective.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

/// A stage, and a microbatch of it where both actions have one.
using Key = std::pair<uint32_t, uint32_t>;

/// Follows one `insert`, rank by rank.
class Inserter {
public:
  Inserter(const Insertion &insertion, const BoundRule &rule, SiteId site,
           const Limits &limits, Evaluator &evaluator, DiagnosticEngine &diags,
           const Program &program)
      : insertion(insertion), rule(rule), site(site), limits(limits),
        evaluator(evaluator), diags(diags), program(program),
        info(program.kinds()[insertion.action]),
        isAnchor(program.kinds().size()), isBarrier(program.kinds().size()),
        isPerStageOrRank(info.scope != KindScope::Microbatch) {
    for (KindId kind : insertion.anchors)
      isAnchor.set(kind.value);
    // Those that it must stay after, or before, when it is moved away
    // from its anchor.
    for (const KindRule &rule : info.rules)
      if (rule.isBefore != insertion.isBefore)
        for (KindId kind : rule.kinds)
          isBarrier.set(kind.value);
    if (!program.hasBackward())
      excludeBackwardKinds();
  }

  std::optional<Rows> run() {
    // Whatever is inserted, all rows are looked at, and written anew.
    constexpr uint64_t costOfRow = 4;
    if (!evaluator.chargeWork(program.size() * costOfRow,
                              insertion.item->range))
      return std::nullopt;
    if (info.scope == KindScope::Rank) { // All at once: ranks may be many.
      firstStages.resize(program.numRanks());
      for (PipeId pipe : program.pipeIds())
        for (StageId stage : program.pipe(pipe).stages())
          if (auto &first = firstStages[program.rankOfStage(pipe, stage).value];
              !first)
            first = {pipe, stage};
    }
    Rows result;
    result.reserve(program.size());
    for (RankId r : program.ranks()) {
      result.beginRank();
      if (!placeOn(r))
        return std::nullopt;
      merge(r, result);
    }
    return result;
  }

private:
  Key keyOf(const Action &action) const {
    if (info.scope == KindScope::Rank)
      return {0, 0};
    return {stageOf(action), isPerStageOrRank ? 0 : action.microbatch};
  }

  /// Finds what is inserted on a rank, and where.
  bool placeOn(RankId rank) {
    scan(rank);
    placed.clear();
    bool perRank = insertion.item->perRank;
    for (uint32_t row : anchors) {
      Action anchor = program[ActionId(row)];
      Key key = keyOf(anchor);
      if (anchorRow.lookup(key) != row + 1)
        continue; // Another of the same stage and microbatch is the one.
      int64_t distance = 0;
      bool wanted =
          isApplicableAt(program.kinds(), info, program.pipe(anchor.pipe),
                         anchor.stage, excluded) &&
          isWanted(anchor, rank, distance);
      if (evaluator.failed())
        return false;
      if (!wanted)
        continue;
      uint32_t from = !perRank             ? row
                      : insertion.isBefore ? anchors.front()
                                           : anchors.back();
      placed.push_back({item(from, distance, key), row, key});
      if (++total + program.size() > limits.maxActions)
        return diags.report<diag::TooManyActions>(
            insertion.item->range, total + program.size(), limits.maxActions);
    }
    llvm::stable_sort(placed, [&](const Placed &a, const Placed &b) {
      if (a.item != b.item || !perRank)
        return a.item < b.item;
      return a.key < b.key; // In one order on all ranks.
    });
    return true;
  }

  /// Notes the items of a rank, its anchors, the one of each key that counts,
  /// and what limits and variables ask for.
  void scan(RankId rank) {
    numItems = 0;
    itemOfRow.clear();
    anchors.clear();
    anchorRow.clear();
    barrierOf.clear();
    ordinals.clear();
    ordinals.resize(insertion.bindings.size());
    firstRow = program.begin(rank).value;
    std::vector<uint32_t> counts(program.kinds().size());
    for (uint32_t row = firstRow; row != program.end(rank).value; ++row) {
      if (!program.joined(ActionId(row)))
        ++numItems;
      uint32_t item = numItems - 1;
      itemOfRow.push_back(item);
      Action action = program[ActionId(row)];
      uint32_t kind = action.kind.value;
      if (isAnchor.test(kind)) {
        anchors.push_back(row);
        uint32_t &known = anchorRow[keyOf(action)];
        if (known == 0 || !insertion.isBefore)
          known = row + 1;
      }
      if (isBarrier.test(kind)) {
        uint32_t &known = barrierOf[keyOf(action)];
        if (known == 0 || insertion.isBefore)
          known = item + 1;
      }
      for (auto [i, binding] : llvm::enumerate(insertion.bindings))
        if (binding.what == Insertion::What::Ordinal &&
            binding.kind == action.kind)
          ordinals[i].try_emplace({stageOf(action), action.microbatch},
                                  counts[kind]);
      ++counts[kind];
    }
  }

  /// A forward-only program has no action that works on gradients, sends them,
  /// or follows or precedes only such ones.
  void excludeBackwardKinds() {
    const KindTable &kinds = program.kinds();
    auto isOut = [&](KindId kind) { return excluded.test(kind.value); };
    auto isWithout = [&](KindId kind) {
      const KindInfo &info = kinds[kind];
      if (info.isDeclared())
        return llvm::any_of(info.rules, [&](const KindRule &rule) {
          return llvm::all_of(rule.kinds, isOut);
        });
      return info.mainSlot() != slot::Output;
    };
    excluded.resize(kinds.size());
    for (bool hasChanged = true; std::exchange(hasChanged, false);)
      for (KindId kind : kinds.ids())
        if (!isOut(kind) && isWithout(kind)) {
          excluded.set(kind.value);
          hasChanged = true;
        }
  }

  static uint32_t stageOf(const Action &action) {
    return action.pipe.value << 16 | action.stage.value;
  }

  /// Evaluates the condition and the distance for what an anchor belongs to.
  bool isWanted(const Action &anchor, RankId rank, int64_t &distance) {
    const ast::InsertItem &item = *insertion.item;
    evaluator.clearFailed();
    if (!evaluator.step(item.range))
      return false;
    Evaluator::Frame frame(evaluator, rule.rule->numLocals, rule.args);
    for (auto [i, binding] : llvm::enumerate(insertion.bindings))
      evaluator.local(binding.slot) = {.i = valueOf(i, anchor, rank)};
    bool wanted = !item.condition || evaluator.evalBool(item.condition);
    if (item.distance && wanted)
      distance = evaluator.evalInt(item.distance);
    return wanted;
  }

  /// What a variable stands for; -1 for an action that the rank does not have.
  int64_t valueOf(size_t index, const Action &anchor, RankId rank) const {
    switch (insertion.bindings[index].what) {
    case Insertion::What::Microbatch:
      return anchor.hasMicrobatch() ? int64_t(anchor.microbatch) : -1;
    case Insertion::What::Stage:
      return anchor.stage.value;
    case Insertion::What::Rank:
      return rank.value;
    case Insertion::What::Ordinal:
      auto found = ordinals[index].find({stageOf(anchor), anchor.microbatch});
      return found == ordinals[index].end() ? -1 : int64_t(found->second);
    }
    return -1;
  }

  /// The item before which an action for the anchor `row` stands.
  uint32_t item(uint32_t row, int64_t distance, Key key) const {
    int64_t own = itemOfRow[row - firstRow], last = numItems;
    uint32_t limit = barrierOf.lookup(key); // Its item, and 1.
    distance = std::clamp<int64_t>(distance, 0, last);
    if (insertion.isBefore)
      return std::min<int64_t>(
          own, std::max<int64_t>({own - distance, 0, int64_t(limit)}));
    int64_t end = limit == 0 ? last : limit - 1;
    return std::max<int64_t>(own + 1, std::min(own + 1 + distance, end));
  }

  /// Appends the rows of a rank with those that are inserted.
  void merge(RankId rank, Rows &result) const {
    auto next = placed.begin();
    auto insertUpTo = [&](uint32_t item) {
      for (; next != placed.end() && next->item <= item; ++next)
        result.append(inserted(program[ActionId(next->anchor)], rank));
    };
    for (uint32_t row = firstRow; row != program.end(rank).value; ++row) {
      if (!program.joined(ActionId(row)))
        insertUpTo(itemOfRow[row - firstRow]);
      result.append(program[ActionId(row)]);
    }
    insertUpTo(numItems);
  }

  Action inserted(const Action &anchor, RankId rank) const {
    Action row = anchor;
    row.kind = insertion.action;
    row.site = site;
    row.joined = false;
    if (isPerStageOrRank)
      row.microbatch = Action::noMicrobatch;
    if (info.scope == KindScope::Rank)
      std::tie(row.pipe, row.stage) = *firstStages[rank.value];
    return row;
  }

  struct Placed {
    uint32_t item, anchor;
    Key key;
  };

  const Insertion &insertion;
  const BoundRule &rule;
  SiteId site;
  const Limits &limits;
  Evaluator &evaluator;
  DiagnosticEngine &diags;
  const Program &program;
  const KindInfo &info;
  BitVector isAnchor, isBarrier, excluded; ///< By kind; the last may be empty.
  bool isPerStageOrRank; ///< Microbatches do not have one each.
  uint64_t total = 0;
  /// By rank, where something of ranks is inserted.
  std::vector<std::optional<std::pair<PipeId, StageId>>> firstStages;

  // Of the rank that is worked on.
  uint32_t firstRow = 0, numItems = 0;
  std::vector<uint32_t> itemOfRow, anchors;
  DenseMap<Key, uint32_t> anchorRow; ///< The row of the anchor, and 1.
  DenseMap<Key, uint32_t> barrierOf; ///< The item of the limit, and 1.
  std::vector<DenseMap<Key, uint32_t>> ordinals; ///< By binding.
  std::vector<Placed> placed;
};

} // namespace

bool ppcc::applyRules(ArrayRef<BoundRule> rules, const Limits &limits,
                      Evaluator &evaluator, const SourceManager &sources,
                      DiagnosticEngine &diags, Program &program) {
  for (const BoundRule &rule : rules) {
    SiteId caller;
    if (rule.rule->item)
      caller = addSite(program, sources, rule.range, caller);
    for (const Insertion &insertion : rule.rule->inserts) {
      SiteId site = addSite(program, sources, insertion.item->range, caller);
      auto result =
          Inserter(insertion, rule, site, limits, evaluator, diags, program)
              .run();
      if (!result)
        return false;
      program = program.withRows(std::move(*result));
    }
  }
  return true;
}
