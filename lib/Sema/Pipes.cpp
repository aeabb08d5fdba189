// Evaluates where stages are, what connects them, and their microbatches.
#include "Instantiate.h"

#include "ppcc/IR/Program.h"
#include "ppcc/Sema/Walk.h"

#include "ppcc/IR/Program.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;
using namespace ppcc::sema;
using llvm::cast;
using llvm::dyn_cast;
using llvm::StringRef;

namespace {

/// Edges that a schedule may add, duplicates included.
constexpr uint32_t maxEdges = 1u << 22;

class PipeBuilder {
public:
  PipeBuilder(const Schedule &schedule, const Place &layout,
              const Limits &limits, Evaluator &evaluator, Instance &instance,
              DiagnosticEngine &diags)
      : schedule(schedule), layoutPlace(layout), limits(limits),
        evaluator(evaluator), instance(instance), program(instance.program),
        diags(diags) {}

  void build() {
    if (schedule.pipes.size() > Program::maxPipes) {
      diags.report<diag::OutOfRange>(
          schedule.pipes.back().range, "the number of pipes",
          schedule.pipes.size(), 1, Program::maxPipes);
      return;
    }
    size_t errorsBefore = diags.errorCount();
    for (const PipeDecl &decl : schedule.pipes) {
      Pipe pipe;
      pipe.name = decl.name.str();
      size_t previous = evaluator.pushFrame(schedule.headerLocals);
      size_t before = diags.errorCount();
      stages(decl, pipe);
      if (diags.errorCount() == before && evaluator.layers &&
          evaluator.layers->numStages() != pipe.numStages())
        diags.report<diag::LayoutStages>(layoutPlace,
                                         evaluator.layers->numStages(),
                                         pipe.name, pipe.numStages());
      if (diags.errorCount() == before)
        microbatches(decl, pipe);
      neighbourEdges.clear();
      gapRanges.clear();
      for (const ast::Stmt *item : decl.edges) {
        evaluator.clearFailed();
        walk(evaluator, item, [&](const ast::Stmt *stmt) {
          edge(cast<ast::EdgeStmt>(stmt), pipe);
          return !evaluator.failed();
        });
      }
      llvm::sort(pipe.skipEdges);
      pipe.skipEdges.erase(llvm::unique(pipe.skipEdges), pipe.skipEdges.end());
      llvm::sort(pipe.gaps);
      pipe.gaps.erase(llvm::unique(pipe.gaps), pipe.gaps.end());
      checkGaps(pipe);
      evaluator.popFrame(previous);
      program.pipes.push_back(std::move(pipe));
    }
    if (diags.errorCount() != errorsBefore)
      return;
    checkDisjoint();
    parts();
  }

private:
  /// As Evaluator::evalInRange, whatever failed before.
  int64_t inRange(const ast::Expr *expr, StringRef what, int64_t low,
                  int64_t high) {
    evaluator.clearFailed();
    return evaluator.evalInRange(expr, what, low, high);
  }

  /// What values of type `pipe` stand for.
  void parts() {
    for (auto [i, pipe] : llvm::enumerate(program.pipes))
      instance.parts.push_back({pipe.name, PipeId(i), 0, pipe.numStages()});
    for (const ModuleDecl &module : schedule.modules) {
      int64_t stages = program.pipes[module.pipe].numStages(),
              from = inRange(module.item->from, "a stage", 0, stages),
              to = inRange(module.item->to, "a stage", from, stages);
      instance.parts.push_back(
          {module.item->name.text.str(), PipeId(module.pipe),
           static_cast<uint32_t>(from), static_cast<uint32_t>(to)});
    }
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
    actions *= int64_t(pipe.numStages()) * (program.hasBackward ? 2 : 1);
    if (total += actions; actions > 0 && total > limits.maxActions) {
      diags.report<diag::TooManyActions>(
          item.end->range,
          total > INT64_MAX ? INT64_MAX : static_cast<int64_t>(total),
          limits.maxActions);
      return;
    }
    if (item.first)
      first = inRange(item.first, "the first microbatch", 0,
                      Program::maxMicrobatches - 1);
    end = inRange(item.end,
                  item.first ? "the end of the microbatches"
                             : "the number of microbatches",
                  first + 1, Program::maxMicrobatches);
    pipe.firstMicrobatch = static_cast<uint32_t>(first);
    pipe.numMicrobatches = static_cast<uint32_t>(end - first);
    if (decl.slices)
      pipe.slices = static_cast<uint32_t>(inRange(decl.slices->count,
                                                  "the number of slices", 1,
                                                  Program::maxMicrobatches));
    int64_t padded =
        item.pad ? inRange(item.pad, "the padded number of microbatches", 0,
                           Program::maxMicrobatches)
                 : pipe.numMicrobatches;
    if (padded < pipe.numMicrobatches && !evaluator.failed())
      diags.report<diag::PadTooSmall>(item.pad->range, padded,
                                      pipe.numMicrobatches);
    for (int64_t count : {int64_t(pipe.numMicrobatches), padded})
      if (count % pipe.slices != 0 &&
          evaluator.fail(diag::SlicesUneven, decl.slices->range))
        diags.report<diag::SlicesUneven>(decl.slices->range, count,
                                         pipe.slices);
    instance.padded.push_back(static_cast<uint64_t>(padded));
  }

  void stages(const PipeDecl &decl, Pipe &pipe) {
    if (decl.placement)
      return place(*decl.placement, pipe);
    int64_t count = inRange(decl.stages->count, "the number of stages", 1,
                            Program::maxStages);
    pipe.rankOfStage.reserve(count);
    for (int64_t stage = 0; stage != count; ++stage) {
      evaluator.clearFailed();
      evaluator.local(decl.stageSlot) = {.i = stage};
      int64_t rank = evaluator.evalInt(decl.stageMap->rank);
      if (evaluator.failed())
        return;
      if (rank < 0 || rank >= program.numRanks) {
        diags.report<diag::StageOnNoRank>(decl.stageMap->rank->range, stage,
                                          rank, program.numRanks - 1);
        return;
      }
      pipe.rankOfStage.push_back(RankId(rank));
    }
  }

  /// The usual maps of a pipe: `chunks` stages a rank; a folded one turns back
  /// at each end.
  void place(const ast::PlacementItem &item, Pipe &pipe) {
    uint32_t ranks = program.numRanks;
    bool folds = item.name.text == "v" || item.name.text == "wave";
    int64_t chunks = item.name.text == "v" ? 2 : 1;
    if (item.argument)
      chunks = inRange(item.argument, "the number of chunks a rank", 1,
                       Program::maxStages);
    if (chunks * ranks > Program::maxStages) {
      diags.report<diag::OutOfRange>(item.range, "the number of stages",
                                     chunks * ranks, 1, Program::maxStages);
      return;
    }
    for (int64_t chunk = 0; chunk != chunks; ++chunk)
      for (uint32_t r = 0; r != ranks; ++r)
        pipe.rankOfStage.push_back(
            RankId(folds && chunk % 2 ? ranks - 1 - r : r));
  }

  void edge(const ast::EdgeStmt *single, Pipe &pipe) {
    int64_t from = evaluator.evalInt(single->from),
            to = evaluator.evalInt(single->to);
    if (evaluator.failed())
      return;
    if (single->isAbsent)
      return gap(*single, from, to, pipe);
    if (from < 0 || from >= to || to >= pipe.numStages()) {
      if (evaluator.fail(diag::BadEdge, single->from->range))
        diags.report<diag::BadEdge>(
            SourceRange(single->from->range.begin, single->to->range.end), from,
            to, pipe.numStages());
      return;
    }
    if (++numEdges > maxEdges) {
      if (evaluator.fail(diag::OutOfRange, single->range))
        diags.report<diag::OutOfRange>(single->range, "the number of edges",
                                       numEdges, 0, maxEdges);
      return;
    }
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
    } else if (evaluator.fail(diag::NoSuchNeighbours, item.from->range)) {
      diags.report<diag::NoSuchNeighbours>(
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
            .report<diag::EdgeBothWays>(gapRanges.lookup(gap.value), gap.value,
                                        gap.value + 1)
            .note(added->second, "it is added here");
  }
  void checkDisjoint() {
    std::vector<const Pipe *> order;
    for (const Pipe &pipe : program.pipes)
      order.push_back(&pipe);
    llvm::stable_sort(order, [](const Pipe *a, const Pipe *b) {
      return a->firstMicrobatch < b->firstMicrobatch;
    });
    for (size_t i = 1; i < order.size(); ++i)
      if (order[i]->firstMicrobatch < order[i - 1]->endMicrobatch())
        diags.report<diag::MicrobatchTwice>(
            schedule.pipes[order[i] - program.pipes.data()].range,
            order[i - 1]->name, order[i]->name, order[i]->firstMicrobatch);
  }

  const Schedule &schedule;
  const Place &layoutPlace;
  const Limits &limits;
  Evaluator &evaluator;
  Instance &instance;
  Head &program;
  DiagnosticEngine &diags;
  __int128 total = 0;
  uint32_t numEdges = 0;
  // Of the pipe at hand, by the lower stage.
  llvm::DenseMap<int64_t, SourceRange> neighbourEdges, gapRanges;
};

} // namespace

void sema::evaluatePipes(const Schedule &schedule, const Place &layout,
                         const Limits &limits, Evaluator &evaluator,
                         Instance &instance, DiagnosticEngine &diags) {
  PipeBuilder(schedule, layout, limits, evaluator, instance, diags).build();
}
