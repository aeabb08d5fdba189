// Adds the actions that rules insert to the rows of a rank, for all n.
#pragma once

#include "AffineDomain.h"
#include "ppcc/IR/Collective.h"
#include "ppcc/Proof/Sequence.h"

namespace ppcc::family {

/// Follows rules on one rank, each on what those before it left.
class Inserter {
public:
  /// `loops` are the loops that loops are of, by number.
  Inserter(AffineEvaluator &terms, const Head &head, uint32_t rank,
           ArrayRef<SteadyLoop> loops, std::vector<proof::Row> &rows)
      : terms(terms), head(head), rank(rank), loops(loops), rows(rows) {}

  void follow(const sema::BoundRule &rule, const sema::Insertion &which) {
    insertion = &which;
    info = &head.kinds[which.action];
    SourceRange range = which.item->range;
    isBarrier.clear();
    isBarrier.resize(head.kinds.size());
    for (const KindRule &one : info->rules)
      if (one.isBefore != which.isBefore)
        for (KindId kind : one.kinds)
          isBarrier.set(kind.value);
    placed.clear();
    movedToPreviousIteration.clear();

    bool isPerStageOrRank = info->scope != KindScope::Microbatch;
    uint8_t common = 0xFF;
    for (KindId kind : which.anchors)
      common &= head.kinds[kind].defines;
    if (!isPerStageOrRank && which.anchors.size() > 1 && common == 0)
      stop(Kind::Undecided, range,
           "a microbatch may have several actions to insert it at");
    std::vector<uint32_t> anchors;
    std::map<uint64_t, uint32_t> chosen; // The first of a stage, or the last.
    for (uint32_t i = 0; i != rows.size(); ++i)
      if (llvm::is_contained(which.anchors, rows[i].kind)) {
        anchors.push_back(i);
        auto [known, isNew] = chosen.try_emplace(keyOf(rows[i]), i);
        if (!isNew && !which.isBefore)
          known->second = i;
      }
    bool perRank = which.item->perRank;
    for (uint32_t anchor : anchors) {
      if (isPerStageOrRank && chosen[keyOf(rows[anchor])] != anchor)
        continue;
      uint32_t from = !perRank         ? anchor
                      : which.isBefore ? anchors.front()
                                       : anchors.back();
      for (uint32_t alone : {anchor, from})
        if (isInLoop(alone) && (isPerStageOrRank || perRank))
          peel(alone, which.isBefore);
      if (const Row &row = rows[anchor]; !isApplicableAt(
              head.kinds, *info, head.pipes[row.pipe.value], row.stage))
        continue;
      auto distance = distanceAt(rule, anchor);
      if (!distance)
        continue;
      int64_t steps = std::clamp<int64_t>(*distance, 0, rows.size());
      if (isInLoop(anchor))
        placeInLoop(anchor, steps);
      else
        place(anchor, from, steps);
    }
    for (auto [anchor, found] : movedToPreviousIteration)
      if (found != 1)
        peel(anchor, /*atBegin=*/false);
    // A window ends before what stands alone, and that before the next.
    auto sideOf = [&](const Placed &one) {
      bool hasIterations = one.row.loop != proof::noLoop;
      return !hasIterations                                         ? 1
             : one.at != 0 && rows[one.at - 1].loop == one.row.loop ? 0
                                                                    : 2;
    };
    llvm::stable_sort(placed, [&](const Placed &a, const Placed &b) {
      // Those of a rank in one order on all ranks.
      return std::tuple(a.at, sideOf(a), perRank ? keyOf(a.row) : 0) <
             std::tuple(b.at, sideOf(b), perRank ? keyOf(b.row) : 0);
    });
    std::vector<Row> result;
    auto next = placed.begin();
    for (uint32_t i = 0; i <= rows.size(); ++i) {
      for (; next != placed.end() && next->at == i; ++next) {
        Row row = next->row;
        row.kind = which.action;
        row.joined = false;
        row.sourceLoc = range.begin.raw;
        if (isPerStageOrRank)
          row.microbatch = Action::noMicrobatch;
        if (info->scope == KindScope::Rank)
          std::tie(row.pipe, row.stage) = *head.firstStageOf(RankId(rank));
        result.push_back(row);
      }
      if (i != rows.size())
        result.push_back(rows[i]);
    }
    rows = std::move(result);
  }

private:
  using Row = proof::Row;
  using Insertion = sema::Insertion;
  using Kind = Outcome::Kind;
  /// What is inserted before row `at`, for an anchor.
  struct Placed {
    uint32_t at;
    uint32_t anchor;
    Row row;
  };

  bool isInLoop(uint32_t row) const { return rows[row].loop != proof::noLoop; }
  uint32_t itemBegin(uint32_t row) const {
    while (rows[row].joined)
      --row;
    return row;
  }
  uint32_t itemEnd(uint32_t row) const {
    do
      ++row;
    while (row != rows.size() && rows[row].joined);
    return row;
  }
  /// The rows of the window of a row, up to the one after the last.
  std::pair<uint32_t, uint32_t> loopRange(uint32_t row) const {
    uint32_t begin = row;
    while (begin != 0 && rows[begin - 1].loop == rows[row].loop)
      --begin;
    return {begin, proof::blockEnd(rows, begin)};
  }
  /// What inserted actions of a stage, or a rank, have in common with an
  /// anchor.
  uint64_t keyOf(const Row &row) const {
    return info->scope == KindScope::Rank
               ? 0
               : uint64_t(row.pipe.value) << 32 | row.stage.value;
  }
  /// Asks a question about a row, in all of its iterations.
  template <class Ask> auto withLoopOf(uint32_t row, Ask ask) {
    AffineDomain &numbers = terms.numbers;
    numbers.inLoop = isInLoop(row);
    if (numbers.inLoop)
      numbers.steadyLoop = loops[rows[row].loop];
    auto answer = ask();
    numbers.inLoop = false;
    return answer;
  }
  /// How far from the anchor its action stands; nothing where there is none.
  std::optional<int64_t> distanceAt(const sema::BoundRule &rule,
                                    uint32_t anchor) {
    const ast::InsertItem &item = *insertion->item;
    AffineEvaluator::Frame frame(terms, rule.rule->numLocals);
    for (auto [i, arg] : llvm::enumerate(rule.args)) {
      sema::Type type = rule.rule->params[i];
      if (isList(type))
        stop(Kind::Undecided, rule.range, "a rule has a list");
      terms.local(i) = type == sema::Type::Float ? AbstractValue{.f = arg.f}
                                                 : AbstractValue{.i = arg.i};
    }
    return withLoopOf(anchor, [&]() -> std::optional<int64_t> {
      for (const Insertion::Binding &binding : insertion->bindings)
        terms.local(binding.slot).i = valueOf(binding, anchor);
      if (item.condition && !terms.evalBool(item.condition))
        return std::nullopt;
      if (!item.distance)
        return 0;
      return terms.numbers.constant(terms.evalInt(item.distance),
                                    item.distance->range, "the distance");
    });
  }
  Affine valueOf(const sema::Insertion::Binding &binding, uint32_t anchor) {
    const Row &row = rows[anchor];
    switch (binding.what) {
    case Insertion::What::Microbatch:
      return row.microbatch == Action::noMicrobatch ? -1 : row.microbatch;
    case Insertion::What::Stage:
      return row.stage.value;
    case Insertion::What::Rank:
      return rank;
    case Insertion::What::Ordinal:
      return ordinalOf(binding.kind, anchor);
    }
    return -1;
  }
  /// The place of an action of a kind, of the stage and microbatch of the
  /// anchor, among those of the rank; -1 without one.
  Affine ordinalOf(KindId kind, uint32_t anchor) {
    const Row &at = rows[anchor];
    std::vector<Affine> ordinals = proof::ordinalsOf(rows, [&](uint32_t row) {
      return rows[row].kind == kind ? std::optional(0) : std::nullopt;
    });
    proof::Sequence ofStage;
    for (uint32_t i = 0; i != rows.size(); ++i)
      if (const Row &row = rows[i];
          row.kind == kind && row.pipe == at.pipe && row.stage == at.stage)
        ofStage.add({rank, i, row.microbatch, isInLoop(i)});
    proof::Domain whole{0, terms.numbers.last, isInLoop(anchor), {}, {0, 1, 0}};
    // Several rows may do it, one after another; their places are one function.
    std::vector<proof::Domain> pieces;
    std::vector<Affine> found;
    bool known = ofStage.find(
        at.microbatch, whole,
        [&](const proof::Event &event, const proof::Domain &domain) {
          pieces.push_back(domain);
          found.push_back(
              proof::substitute(ordinals[event.row], event.iteration));
        });
    if (known && found.empty())
      return -1;
    auto all = llvm::find_if(found, [&](Affine one) {
      return llvm::all_of(llvm::zip(pieces, found), [&](const auto &at) {
        return proof::isZero(one - std::get<1>(at), std::get<0>(at));
      });
    });
    if (!known || all == found.end() || !proof::covers(pieces, whole))
      stop(Kind::Undecided, insertion->item->range,
           "the order of the actions that it counts changes");
    return *all;
  }
  /// Asks for another iteration at the begin, or the end, of the window of a
  /// row.
  [[noreturn]] void peel(uint32_t row, bool atBegin) const {
    const SteadyLoop &of = loops[rows[row].loop];
    terms.numbers.peel(of, atBegin ? of.unrollFactor : 0,
                       atBegin ? 0 : of.unrollFactor, insertion->item->range,
                       "the inserted action is in a loop");
  }
  /// Whether an item, of this iteration of an anchor with the microbatch `of`,
  /// is one that the inserted action must not pass.
  bool hasBarrier(uint32_t begin, uint32_t end, const Row &anchor, Affine of) {
    for (uint32_t i = begin; i != end; ++i) {
      const Row &row = rows[i];
      if (isBarrier.test(row.kind.value) && keyOf(row) == keyOf(anchor) &&
          (info->scope != KindScope::Microbatch ||
           terms.numbers.isZero(row.microbatch - of, insertion->item->range)))
        return true;
    }
    return false;
  }
  /// Goes so many items from before row `from` on, to the border at most, or
  /// up to a limit; `steps` are then those that are left.
  uint32_t moved(uint32_t from, uint32_t border, const Row &anchor, Affine of,
                 int64_t &steps) {
    for (; steps > 0 && from != border; --steps) {
      bool back = insertion->isBefore;
      uint32_t begin = back ? itemBegin(from - 1) : from,
               end = back ? from : itemEnd(from);
      if (hasBarrier(begin, end, anchor, of)) {
        steps = 0;
        break;
      }
      from = back ? begin : end;
    }
    return from;
  }
  /// Places an action that does not stand in a loop, nor moves into one.
  void place(uint32_t anchor, uint32_t from, int64_t steps) {
    bool back = insertion->isBefore;
    uint32_t at = back ? itemBegin(from) : itemEnd(from), border = at;
    while (back ? border != 0 && !isInLoop(border - 1)
                : border != rows.size() && !isInLoop(border))
      back ? --border : ++border;
    Row row = rows[anchor];
    at = moved(at, border, row, row.microbatch, steps);
    if (steps > 0 && back && border != 0) {
      if (!isPlacedByLoop(anchor, border))
        peel(border - 1, /*atBegin=*/false);
      return;
    }
    if (steps > 0 && !back && border != rows.size())
      peel(border, /*atBegin=*/true);
    placed.push_back({at, anchor, row});
  }
  /// Places the actions of an anchor in a window, some of which move into the
  /// iteration before.
  void placeInLoop(uint32_t anchor, int64_t steps) {
    auto [begin, end] = loopRange(anchor);
    bool back = insertion->isBefore;
    Row row = rows[anchor];
    uint32_t from = back ? itemBegin(anchor) : itemEnd(anchor);
    from = withLoopOf(anchor, [&] {
      return moved(from, back ? begin : end, row, row.microbatch, steps);
    });
    if (steps == 0)
      return placed.push_back({from, anchor, row});
    if (!back)
      stop(Kind::Undecided, insertion->item->range,
           "the inserted action moves into the next iteration of a loop");
    // The first iteration's stands before the window,
    Affine of = row.microbatch;
    uint32_t border = begin;
    while (border != 0 && !isInLoop(border - 1))
      --border;
    Row first = row;
    first.loop = proof::noLoop;
    first.microbatch = {of.c, of.n, 0};
    int64_t left = steps;
    uint32_t at = moved(begin, border, first, first.microbatch, left);
    if (left > 0 && border != 0)
      peel(anchor, /*atBegin=*/true);
    placed.push_back({at, anchor, first});
    // and those of others in the iteration before.
    Affine next = Affine{of.c, of.n, 0} + of.j * Affine{1, 0, 1};
    at =
        withLoopOf(anchor, [&] { return moved(end, begin, row, next, steps); });
    if (steps > 0)
      stop(Kind::Undecided, insertion->item->range,
           "the inserted action moves by more than an iteration of a loop");
    row.microbatch = next;
    placed.push_back({at, anchor, row});
    movedToPreviousIteration[anchor] = 0;
  }
  /// Whether the anchor, after a window, is like one in it whose action stands
  /// in the iteration before: so the last iteration has that of this one.
  bool isPlacedByLoop(uint32_t anchor, uint32_t windowEnd) {
    uint32_t begin = loopRange(windowEnd - 1).first;
    uint32_t like = begin + (anchor - windowEnd);
    auto found = movedToPreviousIteration.find(like);
    if (like >= windowEnd || found == movedToPreviousIteration.end())
      return false;
    for (uint32_t i = begin; i <= like; ++i) {
      const Row &row = rows[windowEnd + (i - begin)], &of = rows[i];
      Affine next = Affine{of.microbatch.c, of.microbatch.n, 0} +
                    of.microbatch.j * Affine{1, 1, 0};
      if (row.kind != of.kind || row.pipe != of.pipe || row.stage != of.stage ||
          row.joined != of.joined || row.microbatch != next)
        return false;
    }
    ++found->second;
    return true;
  }

  AffineEvaluator &terms;
  const Head &head;
  const uint32_t rank;
  ArrayRef<SteadyLoop> loops;
  std::vector<Row> &rows;

  // Of the insertion that is followed.
  const sema::Insertion *insertion = nullptr;
  const KindInfo *info = nullptr;
  BitVector isBarrier; ///< By kind.
  std::vector<Placed> placed;
  std::map<uint32_t, uint32_t>
      movedToPreviousIteration; ///< Anchors whose action stands in the
                                ///< iteration before; how often it was found.
};

} // namespace ppcc::family
