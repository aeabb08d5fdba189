// Lays out the program of each rank.
#include "ppcc/Expand/Expand.h"
#include "ppcc/Basic/Diagnostics/Expand.h"
#include "ppcc/Basic/Diagnostics/Instance.h"

#include "Fill.h"
#include "Insert.h"
#include "PeerSides.h"
#include "RankState.h"
#include "Sites.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

/// Finds the loops around a statement of a body, from outside.
bool loopsAround(ast::Body body, const ast::Stmt *wanted,
                 SmallVectorImpl<const ast::ForStmt *> &loops) {
  return llvm::any_of(body, [&](const ast::Stmt *stmt) {
    auto *loop = dyn_cast<ast::ForStmt>(stmt);
    if (loop)
      loops.push_back(loop);
    bool isHere = stmt == wanted;
    forEachBody(stmt, [&](ast::Body inner) {
      isHere = isHere || loopsAround(inner, wanted, loops);
    });
    if (loop && !isHere)
      loops.pop_back();
    return isHere;
  });
}

class Expander {
public:
  Expander(const Module &module, Instance instance, const Limits &limits,
           Evaluator &evaluator, const SourceManager &sources,
           DiagnosticEngine &diags)
      : module(module), instance(std::move(instance)),
        program(std::move(this->instance.program)), limits(limits),
        evaluator(evaluator), sources(sources), diags(diags),
        state(module.kinds, this->instance, program, evaluator, diags),
        sites(module.stmts.size(), program, evaluator, sources, diags) {
    for (KindId whole : module.kinds.ids())
      for (KindId part : module.kinds.ids())
        if (auto rest = module.kinds.without(whole, part);
            rest && (module.kinds[part].needs & module.kinds[*rest].defines)) {
          leaves.try_emplace(rest->value, part);
          isDeferred.insert(part.value);
        }
  }

  std::optional<Program> run(function_ref<bool(Program &)> addCosts) {
    size_t before = diags.errorCount();
    reserve();
    auto count = std::bind_front(&RankState::count, &state);
    evaluator.counter = count;
    for (uint32_t r = 0; r != program.numRanks() && !diags.saturated() &&
                         !isStopped() && evaluator.hasSteps();
         ++r) {
      state.begin(r);
      phase = PhaseId();
      sites.caller = SiteId();
      defer = {};
      inGroup = false;
      program.editRows().beginRank();
      evaluator.clearFailed();
      Evaluator::Frame frame(evaluator, instance.schedule->numLocals);
      evaluator.local(0) = {.i = r};
      evaluator.rank = RankId(r);
      size_t mark = evaluator.mark();
      onRank = instance.onRank(RankId(r));
      inBody = onRank->body;
      bool ok = body(onRank->body);
      evaluator.release(mark);
      if (ok)
        checkLeftPending();
    }
    evaluator.counter = nullptr;
    evaluator.rank.reset();
    if (diags.errorCount() != before)
      return std::nullopt;
    if (!fill(addCosts) ||
        !applyRules(instance.rules, limits, evaluator, sources, diags,
                    program) ||
        !insertPeerSides(addCosts, evaluator, diags, program))
      return std::nullopt;
    dropUnusedKinds();
    return std::move(program);
  }

private:
  /// Files may declare many kinds; a program has those that it uses.
  void dropUnusedKinds() {
    BitVector used(program.kinds().size());
    // Graphs of nodes have numbers of kinds too.
    if (!program.kinds().hasDeclared() || !program.nodes().empty())
      return;
    for (ActionId row : program.rows())
      used.set(program[row].kind.value);
    std::vector<KindId> renumbered;
    KindTable kinds = program.kinds().pruned(std::move(used), renumbered);
    program.setKinds(std::move(kinds), renumbered);
  }

  /// Places what was left to be placed, with the costs that the program will
  /// have.
  bool fill(function_ref<bool(Program &)> addCosts) {
    if (regions.empty())
      return true;
    Program costed = program;
    if (!addCosts(costed) || !fillDeferred(regions, evaluator, diags, costed))
      return false;
    program = program.withRows(costed.allRows());
    return true;
  }

  // ---- Ranks ----

  /// Room for a program in which every B is split; what is not filled is never
  /// touched.
  void reserve() {
    uint64_t rows = 0;
    for (const Pipe &pipe : program.pipes())
      rows += uint64_t(pipe.numStages()) * pipe.numMicrobatches *
              (program.hasBackward() ? 3 : 1);
    program.editRows().reserve(std::min(rows, limits.maxActions));
  }

  void checkLeftPending() {
    DeferredQueue::Entry *entry = state.queue.oldest(nullptr);
    if (!entry)
      return;
    const Chunk &chunk = *entry->chunk;
    StringRef mnemonic = module.kinds[entry->kind].mnemonic;
    const Pipe &pipe = program.pipe(chunk.pipe);
    if (!evaluator.fail(diag::LeftPending, onRank->range))
      return;
    diags
        .report<diag::LeftPending>(
            onRank->range, state.rank.value, state.queue.size(), mnemonic,
            fmt::format("{}{}{}", chunk.stage.value, mnemonic,
                        pipe.firstMicrobatch + entry->microbatch))
        .note(entry->by, "it was left by this action");
  }

  // ---- Statements ----

  /// Runs statements in order; false when the rank cannot go on.
  bool body(ast::Body statements) {
    return evaluator.walk(statements, [this](const ast::Stmt *stmt) {
      return dispatch(stmt, [this](const auto &node) { return run(&node); });
    });
  }

  bool run(const ast::Stmt *) {
    llvm_unreachable("the check refuses it among what ranks do");
  }

  bool run(const ast::PhaseStmt *stmt) {
    llvm::SaveAndRestore inPhase(phase, sites.phase(*stmt));
    return !evaluator.failed() && body(stmt->body);
  }

  bool run(const ast::OverlapStmt *stmt) {
    if (defer.isFill)
      return reportNotInFill(stmt->range, "overlap");
    inGroup = true;
    groupRows = 0;
    bool ok = body(stmt->body);
    inGroup = false;
    return ok && issueOverdue(stmt);
  }

  bool run(const ast::DeferStmt *stmt) {
    if (defer.isFill)
      return reportNotInFill(stmt->range, "defer");
    auto number = [&](const ast::Expr *expr) {
      return expr ? std::optional(evaluator.evalInt(expr)) : std::nullopt;
    };
    auto lag = number(stmt->lag), cap = number(stmt->cap);
    if (evaluator.failed())
      return false;
    bool isFill = !stmt->fill.text.empty();
    ActionId begin(program.allRows().size());
    llvm::SaveAndRestore inDefer(
        defer, Defer{true, KindId(evaluator.slotOf(stmt)), lag, isFill});
    bool ok = body(stmt->body);
    ActionId end(program.allRows().size());
    if (isFill && begin != end)
      regions.push_back({begin, end, defer.kind, lag, cap, stmt->range});
    return ok;
  }

  bool run(const ast::ActionStmt *stmt) {
    return module.stmts[stmt->id].isBlock ? call(stmt) : action(stmt);
  }

  /// Reports what cannot stand in `defer W fill`.
  bool reportNotInFill(SourceRange range, StringRef what) {
    evaluator.refuse<diag::NotInFill>(range, what,
                                      module.kinds[defer.kind].mnemonic);
    return false;
  }

  bool run(const ast::WhileStmt *stmt) {
    while (true) {
      bool goOn = evaluator.evalBool(stmt->condition);
      if (evaluator.failed())
        return false;
      if (!goOn)
        return true;
      // Nothing but the counters changes, so an iteration that leaves them
      // alone is the first of endlessly many.
      uint64_t before = progress;
      size_t mark = evaluator.mark();
      if (!body(stmt->body))
        return false;
      evaluator.release(mark);
      if (progress == before)
        return refuse<diag::EndlessWhile>(stmt);
    }
  }

  /// Reports, once a place, and tells where the run is. False.
  template <diag::Id id, class... Args>
  bool refuse(const ast::Stmt *stmt, Args &&...args) {
    if (evaluator.fail(id, stmt->range))
      diags.report<id>(stmt->range, std::forward<Args>(args)...)
          .note({}, "{}", describeIteration(stmt));
    return false;
  }

  /// Where the run is: `on rank 1, in the iteration with m = 3`.
  std::string describeIteration(const ast::Stmt *stmt) {
    std::string text = fmt::format("on rank {}", state.rank.value);
    SmallVector<const ast::ForStmt *> loops;
    loopsAround(inBody, stmt, loops);
    for (const ast::ForStmt *loop : loops)
      text += fmt::format(
          "{}{} = {}",
          loop == loops.front() ? ", in the iteration with " : ", ",
          loop->variable.text, evaluator.local(evaluator.slotOf(loop)).i);
    return text;
  }

  bool call(const ast::ActionStmt *stmt) {
    const Block &block = module.blocks[module.stmts[stmt->id].index];
    SmallVector<Value, 4> args;
    for (size_t i = 0; i != stmt->args.size(); ++i)
      args.push_back(evaluator.evalAs(stmt->args[i].value, block.params[i]));
    if (evaluator.failed())
      return false;
    llvm::SaveAndRestore inCall(sites.caller, sites.site(stmt));
    if (isStopped())
      return false;
    Evaluator::Frame frame(evaluator, block.numLocals, args);
    llvm::SaveAndRestore inBlock(inBody, block.item->body);
    return body(block.item->body);
  }

  // ---- Actions ----

  bool action(const ast::ActionStmt *stmt) {
    KindId kind = KindId(module.stmts[stmt->id].index);
    std::optional<ChunkArg> chunkArg;
    std::optional<int64_t> microbatch;
    for (const ast::Argument &arg : stmt->args)
      if (arg.label.text.empty())
        chunkArg = evaluator.evalChunk(arg.value);
      else
        microbatch = evaluator.evalInt(arg.value);
    if (evaluator.failed())
      return false;

    const KindInfo *info = &module.kinds[kind];
    if (isDeferred.count(kind.value) && !defer.isFill)
      return issueDeferred(stmt, kind, chunkArg, microbatch);
    if (defer.active)
      if (std::optional<KindId> rest = module.kinds.without(kind, defer.kind)) {
        kind = *rest;
        info = &module.kinds[kind];
      }
    if (defer.isFill &&
        (info->isDeclared() ||
         (info->defines != slot::Output && info->defines != slot::InputGrad)))
      return reportNotInFill(stmt->range, info->mnemonic);

    Chunk *chunk = info->scope == KindScope::Rank
                       ? state.anyChunk(stmt->range)
                       : state.resolve(chunkArg, stmt->range, info->mnemonic);
    if (!chunk)
      return false;
    const Pipe &pipe = program.pipes()[chunk->pipe.value];
    uint64_t &issued = state.issuedOf(*chunk, kind);
    uint64_t index = info->scope == KindScope::Microbatch ? issued : 0;
    if (microbatch) {
      if (*microbatch < pipe.firstMicrobatch ||
          uint64_t(*microbatch) - pipe.firstMicrobatch >= chunk->padded) {
        return refuse<diag::MicrobatchOutOfRange>(
            stmt, *microbatch, chunk->stage.value, pipe.firstMicrobatch,
            pipe.firstMicrobatch + chunk->padded);
      }
      index = *microbatch - pipe.firstMicrobatch;
    } else if (index < chunk->padded) {
      index = inOrder(pipe, *info, index);
    } else {
      return refuse<diag::NoMicrobatchLeft>(stmt, info->mnemonic, chunk->padded,
                                            chunk->stage.value);
    }
    ++issued;
    ++progress;
    if (auto deferredKind = leaves.find(kind.value);
        deferredKind != leaves.end() && !defer.isFill)
      state.queue.push(
          {chunk, uint32_t(index), deferredKind->second, stmt->range.begin});
    return emit(kind, *chunk, index, stmt) && (inGroup || issueOverdue(stmt));
  }

  /// Of the microbatches that an action takes one after another, the n-th: the
  /// slices of a sequence come backwards where gradients go from each to the
  /// one before it.
  static uint64_t inOrder(const Pipe &pipe, const KindInfo &info, uint64_t n) {
    if (pipe.slices == 1 || !(info.defines & slot::InputGrad))
      return n;
    uint64_t slice = n % pipe.slices;
    return n - slice + (pipe.slices - 1 - slice);
  }

  /// Adds the row, unless the microbatch is only padding.
  bool emit(KindId kind, const Chunk &chunk, uint64_t index,
            const ast::Stmt *stmt) {
    SiteId at = sites.site(stmt);
    if (isStopped())
      return false;
    const KindInfo &info = module.kinds[kind];
    if (!program.hasBackward() && !info.isDeclared() &&
        info.defines != slot::Output)
      return true;
    // In a region to fill, an action comes with each that leaves one.
    numExpanded += defer.isFill && leaves.count(kind.value) ? 2 : 1;
    if (numExpanded > limits.maxActions) {
      diags.report<diag::TooManyActions>(stmt->range, numExpanded,
                                         limits.maxActions);
      stopped = true;
      return false;
    }
    const Pipe &pipe = program.pipe(chunk.pipe);
    if (index >= pipe.numMicrobatches)
      return true;
    program.editRows().append(
        {.kind = kind,
         .pipe = chunk.pipe,
         .stage = chunk.stage,
         .microbatch = info.scope == KindScope::Microbatch
                           ? uint32_t(pipe.firstMicrobatch + index)
                           : Action::noMicrobatch,
         .phase = phase,
         .site = at,
         .joined = inGroup && groupRows++ != 0});
    return true;
  }

  /// `W`, `W(c)` or `W(c, mb: m)`.
  bool issueDeferred(const ast::ActionStmt *stmt, KindId kind,
                     const std::optional<ChunkArg> &chunkArg,
                     std::optional<int64_t> microbatch) {
    StringRef mnemonic = module.kinds[kind].mnemonic;
    Chunk *chunk = nullptr;
    if (chunkArg || microbatch) {
      chunk = state.resolve(chunkArg, stmt->range, mnemonic);
      if (!chunk)
        return false;
    }
    DeferredQueue::Entry *entry;
    if (microbatch) {
      uint32_t first = program.pipe(chunk->pipe).firstMicrobatch;
      entry = *microbatch < first
                  ? nullptr
                  : state.queue.find(*chunk, *microbatch - first);
    } else {
      entry = state.queue.oldest(chunk);
    }
    if (entry)
      return take(kind, *entry, stmt);
    if (microbatch)
      refuse<diag::NotPending>(stmt, fmt::format("{}{}{}", chunk->stage.value,
                                                 mnemonic, *microbatch));
    else
      refuse<diag::EmptyQueue>(
          stmt, mnemonic,
          chunk ? fmt::format(" of stage {}", chunk->stage.value) : "");
    evaluator.clearFailed();
    return true;
  }

  bool take(KindId kind, DeferredQueue::Entry &entry, const ast::Stmt *stmt) {
    state.queue.take(entry);
    ++state.issuedOf(*entry.chunk, kind);
    ++progress;
    return emit(kind, *entry.chunk, entry.microbatch, stmt);
  }

  /// The deferred actions above the lag.
  bool issueOverdue(const ast::Stmt *stmt) {
    if (!defer.active || !defer.lag || defer.isFill)
      return true;
    while (state.queue.size() != 0 && int64_t(state.queue.size()) > *defer.lag)
      if (!take(defer.kind, *state.queue.oldest(nullptr), stmt))
        return false;
    return true;
  }

  bool run(const ast::DrainStmt *stmt) {
    if (defer.isFill)
      return reportNotInFill(stmt->range, "drain");
    KindId kind = KindId(module.stmts[stmt->id].index);
    Chunk *chunk = nullptr;
    if (stmt->chunk) {
      ChunkArg arg = evaluator.evalChunk(stmt->chunk);
      chunk = evaluator.failed() ? nullptr
                                 : state.resolve(arg, stmt->range,
                                                 module.kinds[kind].mnemonic);
      if (!chunk)
        return false;
    }
    while (DeferredQueue::Entry *entry = state.queue.oldest(chunk))
      if (!take(kind, *entry, stmt))
        return false;
    return true;
  }

  /// Whether a limit was reached: no rank goes on.
  bool isStopped() const { return stopped || sites.isFull; }

  struct Defer {
    bool active = false;
    KindId kind;
    std::optional<int64_t> lag;
    bool isFill = false; ///< Nothing is left on the queue.
  };

  const Module &module;
  Instance instance;
  Program program;
  const Limits &limits;
  Evaluator &evaluator;
  const SourceManager &sources;
  DiagnosticEngine &diags;
  RankState state;
  SiteTable sites;

  DenseMap<uint32_t, KindId> leaves; ///< By kind: what it leaves on the queue.
  std::set<uint32_t> isDeferred;     ///< Kinds that are taken from the queue.

  const ast::OnRankItem *onRank = nullptr; ///< Of the rank at hand.
  PhaseId phase;
  Defer defer;
  bool inGroup = false;
  uint32_t groupRows = 0;
  uint64_t progress = 0;
  std::vector<FillRegion> regions;
  uint64_t numExpanded =
      0;            ///< Actions of all ranks, those for padding included.
  ast::Body inBody; ///< That of the rank, or of the block that runs.
  bool stopped = false;
};

} // namespace

std::optional<Program> ppcc::expand(const Module &module, Instance instance,
                                    const Limits &limits, Evaluator &evaluator,
                                    const SourceManager &sources,
                                    function_ref<bool(Program &)> addCosts,
                                    DiagnosticEngine &diags) {
  return Expander(module, std::move(instance), limits, evaluator, sources,
                  diags)
      .run(addCosts);
}
