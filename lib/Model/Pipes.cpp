// Evaluates where stages are, what connects them, and their microbatches.
#include "Instantiate.h"

#include "ppcc/Basic/Diagnostics/Sema.h"
#include "ppcc/IR/HeadChecks.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

/// Edges that a schedule may add, duplicates included.
constexpr uint32_t maxEdges = 1u << 20;

struct PipeBuilder {
  const Schedule &schedule;
  const Location &layoutPlace;
  const InstantiationContext &context;
  const Limits &limits = context.limits;
  Evaluator &evaluator = context.evaluator;
  Instance &instance = context.instance;
  DiagnosticEngine &diags = context.diags;
  Head &head = context.head;

  void build() {
    size_t errorsBefore = diags.errorCount();
    // The pipes of loops have numbers after those of all that has a name.
    int64_t next = int64_t(schedule.pipes.size() + schedule.parts.size());
    for (auto [number, decl] : llvm::enumerate(schedule.pipes)) {
      evaluator.clearFailed();
      firstPipe.push_back(head.pipes.size());
      if (!decl.loop) {
        build(decl, 0);
        continue;
      }
      int64_t from = evaluator.evalInt(decl.loop->from),
              to = evaluator.evalInt(decl.loop->to);
      SmallVector<Value> made;
      for (int64_t i = from; i < to && !evaluator.failed(); ++i) {
        if (!evaluator.step(decl.loop->range) || !build(decl, i))
          break;
        made.push_back({.i = next++});
      }
      evaluator.globals[schedule.pipeSlots[number]] = evaluator.makeList(made);
    }
    firstPipe.push_back(head.pipes.size());
    if (diags.errorCount() != errorsBefore)
      return;
    if (head.pipes.empty())
      return diags.refuse<diag::OutOfRange>(schedule.pipes.front().range,
                                            "the number of pipes", 0, 1,
                                            Program::maxPipes);
    checkDisjoint();
    parts();
  }

  /// Adds a pipe, the one of iteration `i` if it stands in a loop. False when
  /// there are too many.
  bool build(const PipeDecl &decl, int64_t i) {
    if (head.pipes.size() == Program::maxPipes)
      return diags.report<diag::OutOfRange>(decl.range, "the number of pipes",
                                            head.pipes.size() + 1, 1,
                                            Program::maxPipes);
    Pipe pipe;
    pipe.name =
        decl.loop ? fmt::format("{}[{}]", decl.name, i) : decl.name.str();
    Evaluator::Frame frame(evaluator, schedule.headerLocals);
    if (decl.loop)
      evaluator.local(evaluator.slotOf(decl.loop)) = {.i = i};
    size_t before = diags.errorCount();
    stages(decl, pipe);
    if (diags.errorCount() == before && evaluator.layers &&
        evaluator.layers->numStages() != pipe.numStages())
      diags.report<diag::LayoutStages>(layoutPlace,
                                       evaluator.layers->numStages(), pipe.name,
                                       pipe.numStages());
    if (diags.errorCount() == before)
      microbatches(decl, pipe);
    neighbourEdges.clear();
    gapRanges.clear();
    for (const ast::Stmt *item : decl.edges) {
      evaluator.clearFailed();
      evaluator.walk(item, [&](const ast::Stmt *stmt) {
        edge(cast<ast::EdgeStmt>(stmt), pipe);
        return !evaluator.failed();
      });
    }
    sortEdges(pipe);
    checkGaps(pipe);
    if (diags.errorCount() == before)
      countMessages(decl, pipe);
    head.pipes.push_back(std::move(pipe));
    declOf.push_back(&decl);
    return true;
  }

  /// Each edge carries as many as there are microbatches, and back.
  void countMessages(const PipeDecl &decl, const Pipe &pipe) {
    uint64_t edges =
        pipe.skipEdges.size() + pipe.numStages() - 1 - pipe.gaps.size();
    messages += edges * pipe.numMicrobatches * (head.hasBackward ? 2 : 1);
    if (messages > limits.maxActions)
      diags.report<diag::TooManyEdgeMessages>(decl.microbatches->range,
                                              messages, limits.maxActions);
  }

  /// As Evaluator::evalInRange, whatever failed before.
  int64_t inRange(const ast::Expr *expr, StringRef what, int64_t low,
                  int64_t high) {
    evaluator.clearFailed();
    return evaluator.evalInRange(expr, what, low, high);
  }

  /// What values of type `pipe` stand for; those of type `part` come later.
  void parts() {
    auto add = [&](size_t i) {
      const Pipe &pipe = head.pipes[std::min(i, head.pipes.size() - 1)];
      instance.parts.push_back({pipe.name, {{PipeId(i), 0, pipe.numStages()}}});
    };
    for (size_t decl = 0; decl != schedule.pipes.size(); ++decl)
      add(firstPipe[decl]);
    for (const PartName &part : schedule.parts)
      instance.parts.push_back({part.name.text.str(), {}});
    for (size_t decl = 0; decl != schedule.pipes.size(); ++decl)
      if (schedule.pipes[decl].loop)
        for (size_t i = firstPipe[decl]; i != firstPipe[decl + 1]; ++i)
          add(i);
  }

  void microbatches(const PipeDecl &decl, Pipe &pipe) {
    const ast::MicrobatchesItem &item = *decl.microbatches;
    evaluator.clearFailed();
    // What the limit on actions forbids is said in its terms, whatever else may
    // be wrong with the number.
    int64_t end = evaluator.evalInt(item.end),
            first = item.first ? evaluator.evalInt(item.first) : 0;
    int64_t pad = item.pad ? evaluator.evalInt(item.pad) : 0;
    if (evaluator.failed())
      return;
    __int128 actions = std::max(__int128(end) - first, __int128(pad));
    actions *= int64_t(pipe.numStages()) * (head.hasBackward ? 2 : 1);
    if (total += actions; actions > 0 && total > limits.maxActions)
      return diags.refuse<diag::TooManyActions>(
          item.end->range, total > INT64_MAX ? INT64_MAX : int64_t(total),
          limits.maxActions);
    if (item.first)
      first = inRange(item.first, "the first microbatch", 0,
                      Program::maxMicrobatches - 1);
    end = inRange(item.end,
                  item.first ? "the end of the microbatches"
                             : "the number of microbatches",
                  first + 1, Program::maxMicrobatches);
    pipe.firstMicrobatch = uint32_t(first);
    pipe.numMicrobatches = uint32_t(end - first);
    if (decl.slices)
      pipe.slices = uint32_t(inRange(decl.slices->count, "the number of slices",
                                     1, Program::maxMicrobatches));
    int64_t padded =
        item.pad ? inRange(item.pad, "the padded number of microbatches", 0,
                           Program::maxMicrobatches)
                 : pipe.numMicrobatches;
    if (padded < pipe.numMicrobatches && !evaluator.failed())
      diags.report<diag::PadTooSmall>(item.pad->range, padded,
                                      pipe.numMicrobatches);
    for (int64_t count : {int64_t(pipe.numMicrobatches), padded})
      if (count % pipe.slices != 0)
        evaluator.refuse<diag::SlicesUneven>(decl.slices->range, count,
                                             pipe.slices);
    instance.padded.push_back(uint64_t(padded));
  }

  void stages(const PipeDecl &decl, Pipe &pipe) {
    if (!decl.placement)
      return map(decl, {}, pipe);
    const ast::PlacementItem &use = *decl.placement;
    const Placement &placement =
        evaluator.module.placements[evaluator.slotOf(&use)];
    evaluator.clearFailed();
    SmallVector<Value> args;
    for (auto [arg, type] : llvm::zip_equal(use.args, placement.params))
      args.push_back(evaluator.evalAs(arg, type));
    if (evaluator.failed())
      return;
    Evaluator::Frame frame(evaluator, placement.numLocals, args);
    bool isGood = true;
    for (auto [i, arg] : llvm::enumerate(args))
      isGood &= isInRange(placement.item->params[i], placement.params[i], arg,
                          use.args[i]->range, evaluator, diags);
    if (isGood)
      map(placement, use.range, pipe);
  }

  /// Puts stages on their ranks. What is wrong shows at `use`, if that is
  /// valid.
  void map(const StageMapping &places, SourceRange use, Pipe &pipe) {
    const ast::Expr *stages = places.stages->count,
                    *onRank = places.stageMap->rank;
    evaluator.clearFailed();
    int64_t count = evaluator.evalInt(stages);
    if (evaluator.failed())
      return;
    if (count < 1 || count > Program::maxStages)
      return diags.refuse<diag::OutOfRange>(use.valid() ? use : stages->range,
                                            "the number of stages", count, 1,
                                            Program::maxStages);
    pipe.rankOfStage.reserve(count);
    for (int64_t stage = 0; stage != count; ++stage) {
      evaluator.local(places.stageSlot) = {.i = stage};
      int64_t rank = evaluator.evalInt(onRank);
      if (evaluator.failed())
        return;
      if (rank < 0 || rank >= head.numRanks)
        return diags.refuse<diag::StageOnNoRank>(
            use.valid() ? use : onRank->range, stage, rank, head.numRanks - 1);
      pipe.rankOfStage.push_back(RankId(rank));
    }
  }

  void edge(const ast::EdgeStmt *single, Pipe &pipe) {
    int64_t from = evaluator.evalInt(single->from),
            to = evaluator.evalInt(single->to);
    if (evaluator.failed())
      return;
    if (single->isAbsent)
      return gap(*single, from, to, pipe);
    if (from < 0 || from >= to || to >= pipe.numStages())
      return evaluator.refuse<diag::BadEdge>(
          SourceRange(single->from->range.begin, single->to->range.end), from,
          to, pipe.numStages());
    if (++numEdges > maxEdges)
      return evaluator.refuse<diag::OutOfRange>(
          single->range, "the number of edges", numEdges, 0, maxEdges);
    if (to == from + 1) // Neighbours have their edge already.
      neighbourEdges.try_emplace(from, single->range);
    else
      pipe.skipEdges.push_back({StageId(from), StageId(to)});
  }

  /// Leaves out the edge from a stage to the next.
  void gap(const ast::EdgeStmt &item, int64_t from, int64_t to, Pipe &pipe) {
    if (from >= 0 && to < pipe.numStages() && to == from + 1) {
      pipe.gaps.push_back(StageId(from));
      gapRanges.try_emplace(from, item.range);
    } else {
      evaluator.refuse<diag::NoSuchNeighbours>(
          SourceRange(item.from->range.begin, item.to->range.end),
          pipe.numStages(), from, to);
    }
  }

  /// Reports edges that are written both with and without `no`.
  void checkGaps(const Pipe &pipe) {
    for (StageId gap : pipe.gaps)
      if (auto added = neighbourEdges.find(gap.value);
          added != neighbourEdges.end() && !diags.saturated())
        diags
            .report<diag::EdgeAddedAndRemoved>(gapRanges.lookup(gap.value),
                                               gap.value, gap.value + 1)
            .note(added->second, "it is added here");
  }
  void checkDisjoint() {
    std::vector<const Pipe *> order;
    for (const Pipe &pipe : head.pipes)
      order.push_back(&pipe);
    llvm::stable_sort(order, [](const Pipe *a, const Pipe *b) {
      return a->firstMicrobatch < b->firstMicrobatch;
    });
    for (size_t i = 1; i < order.size(); ++i)
      if (order[i]->firstMicrobatch < order[i - 1]->endMicrobatch())
        diags.report<diag::MicrobatchTwice>(
            declOf[order[i] - head.pipes.data()]->range, order[i - 1]->name,
            order[i]->name, order[i]->firstMicrobatch);
  }

  std::vector<size_t> firstPipe{}; ///< By declaration.
  std::vector<const PipeDecl *> declOf{};
  __int128 total = 0;
  uint64_t messages = 0;
  uint32_t numEdges = 0;
  // Of the pipe at hand, by the lower stage.
  DenseMap<int64_t, SourceRange> neighbourEdges{}, gapRanges{};
};

} // namespace

void sema::evaluatePipes(const Schedule &schedule, const Location &layout,
                         const InstantiationContext &context) {
  PipeBuilder{schedule, layout, context}.build();
}
