// Lays out the program of each rank.
#include "ppcc/Expand/Expand.h"
#include "ppcc/Basic/Diagnostics/Expand.h"

#include "DeferredQueue.h"
#include "Sites.h"
#include "Steps.h"
#include "ppcc/Model/RankBody.h"

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

class Expander : RankBody<Expander, Evaluator, Chunk, DeferredQueue> {
public:
  Expander(const Module &module, Instance instance, const Limits &limits,
           Evaluator &evaluator, const SourceManager &sources,
           DiagnosticEngine &diags)
      : RankBody(evaluator), module(module), instance(std::move(instance)),
        program(std::move(this->instance.program)), limits(limits),
        sources(sources), diags(diags),
        sites(module.stmts.size(), program, evaluator, sources, diags),
        hosted(program.numRanks()) {
    padded.assign(this->instance.padded.begin(), this->instance.padded.end());
    for (PipeId pipe : program.pipeIds())
      for (StageId stage : program.pipe(pipe).stages())
        hosted[program.rankOfStage(pipe, stage).value].push_back({pipe, stage});
  }

  std::optional<Program> run(function_ref<bool(Program &)> addCosts) {
    if (!runBodies())
      return std::nullopt;
    if (instance.rows) // The bodies name their phases.
      program = program.withRows(*instance.rows);
    if (!fill(addCosts) ||
        !applyRules(instance.rules, limits, evaluator, sources, diags,
                    program) ||
        !insertPeerSides(addCosts, evaluator, diags, program))
      return std::nullopt;
    dropUnusedKinds();
    return std::move(program);
  }

private:
  friend RankBody;

  bool runBodies() {
    size_t before = diags.errorCount();
    reserve();
    auto count = [this](auto &&...args) { return counterOf(args...); };
    evaluator.counter = count;
    for (uint32_t r = 0; r != program.numRanks() && !diags.saturated() &&
                         !isStopped() && evaluator.hasSteps();
         ++r) {
      chunks.clear();
      for (auto [pipe, stage] : hosted[r]) {
        Chunk &chunk = chunks.emplace_back();
        chunk.pipe = pipe;
        chunk.stage = stage;
        chunk.padded = instance.padded[pipe.value];
      }
      beginRank();
      rank = RankId(r);
      phase = PhaseId();
      sites.caller = SiteId();
      program.editRows().beginRank();
      evaluator.clearFailed();
      Evaluator::Frame frame(evaluator, instance.schedule->numLocals);
      evaluator.local(0) = {.i = r};
      evaluator.rank = rank;
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
    return diags.errorCount() == before;
  }

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
            onRank->range, rank.value, state.queue.size(), mnemonic,
            fmt::format("{}{}{}", chunk.stage.value, mnemonic,
                        pipe.firstMicrobatch + entry->microbatch))
        .note(entry->by, "it was left by this action");
  }

  // ---- Statements ----

  using RankBody::run;

  bool run(const ast::PhaseStmt *stmt) {
    llvm::SaveAndRestore inPhase(phase, sites.phase(*stmt));
    return !evaluator.failed() && RankBody::run(stmt);
  }

  bool run(const ast::OverlapStmt *stmt) {
    return defer.isFill ? reportNotInFill(stmt->range, "overlap")
                        : RankBody::run(stmt);
  }
  bool run(const ast::DeferStmt *stmt) {
    return defer.isFill ? reportNotInFill(stmt->range, "defer")
                        : RankBody::run(stmt);
  }
  bool run(const ast::DrainStmt *stmt) {
    return defer.isFill ? reportNotInFill(stmt->range, "drain")
                        : RankBody::run(stmt);
  }

  bool runDefer(const ast::DeferStmt *stmt) {
    ActionId begin(program.allRows().size());
    bool ok = body(stmt->body);
    ActionId end(program.allRows().size());
    if (defer.isFill && begin != end)
      regions.push_back(
          {begin, end, defer.kind, defer.lag, defer.cap, stmt->range});
    return ok;
  }

  /// Reports what cannot stand in `defer W fill`.
  bool reportNotInFill(SourceRange range, StringRef what) {
    evaluator.refuse<diag::NotInFill>(range, what,
                                      module.kinds[defer.kind].mnemonic);
    return false;
  }

  bool endless(const ast::WhileStmt *stmt) {
    return refuse<diag::EndlessWhile>(stmt);
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
    std::string text = fmt::format("on rank {}", rank.value);
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
    llvm::SaveAndRestore inCall(sites.caller, sites.site(stmt));
    if (isStopped())
      return false;
    llvm::SaveAndRestore inBlock(
        inBody, module.blocks[evaluator.slotOf(stmt)].item->body);
    return RankBody::call(stmt);
  }

  // ---- Chunks ----

  bool isIn(int64_t part, const Chunk &chunk) const {
    return instance.parts[part].has(chunk.pipe, chunk.stage);
  }
  PipeId pipeOf(int64_t part) const {
    return instance.parts[part].stages.front().pipe;
  }

  Chunk *unresolved(const std::optional<ChunkArg> &arg, SourceRange range,
                    StringRef mnemonic, size_t matches) {
    std::string ofPart;
    if (arg && !arg->isPipe) {
      if (!evaluator.fail(diag::ChunkOutOfRange, arg->range))
        return nullptr;
      auto report = diags.report<diag::ChunkOutOfRange>(arg->range, rank.value,
                                                        arg->value);
      if (chunks.size() == 1)
        report
            .note({},
                  "rank {} has 1 chunk; give the number of a microbatch after "
                  "`mb:`, as in `{}(mb: {})`",
                  rank.value, mnemonic, arg->value)
            .insert(arg->range.begin, "mb: ");
      else
        report.note({}, "rank {} has {} chunks", rank.value, chunks.size());
      return nullptr;
    }
    if (arg) {
      range = arg->range;
      size_t pipes = instance.schedule->pipes.size(), number = arg->value;
      bool isPipe =
          number < pipes || number >= pipes + instance.schedule->parts.size();
      ofPart = fmt::format(" of {} `{}`", isPipe ? "pipe" : "part",
                           instance.parts[number].name);
    }
    if (matches == 0)
      evaluator.refuse<diag::NoChunk>(range, rank.value, ofPart);
    else
      evaluator.refuse<diag::AmbiguousChunk>(range, rank.value, matches, ofPart,
                                             mnemonic);
    return nullptr;
  }

  // ---- Actions ----

  bool admits(const KindInfo &info, const ast::Stmt *stmt) {
    return !defer.isFill ||
           (!info.isDeclared() && (info.defines == slot::Output ||
                                   info.defines == slot::InputGrad)) ||
           reportNotInFill(stmt->range, info.mnemonic);
  }

  bool choose(const ast::Stmt *stmt, const KindInfo &info, const Chunk &chunk,
              std::optional<int64_t> microbatch, int64_t &index) {
    const Pipe &pipe = program.pipes()[chunk.pipe.value];
    if (microbatch) {
      if (*microbatch < pipe.firstMicrobatch ||
          uint64_t(*microbatch) - pipe.firstMicrobatch >= chunk.padded)
        return refuse<diag::MicrobatchOutOfRange>(
            stmt, *microbatch, chunk.stage.value, pipe.firstMicrobatch,
            pipe.firstMicrobatch + chunk.padded);
      index = *microbatch - pipe.firstMicrobatch;
    } else if (uint64_t(index) < chunk.padded) {
      index = inOrder(pipe, info, index);
    } else {
      return refuse<diag::NoMicrobatchLeft>(stmt, info.mnemonic, chunk.padded,
                                            chunk.stage.value);
    }
    return true;
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
    numExpanded += defer.isFill && deferredBy.count(kind.value) ? 2 : 1;
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

  void enqueue(Chunk &chunk, uint64_t index, KindId kind,
               const ast::Stmt *stmt) {
    state.queue.push({&chunk, uint32_t(index), kind, stmt->range.begin});
  }

  int64_t pendingOf(const Chunk *chunk, SourceRange) const {
    return chunk ? chunk->pending : state.queue.size();
  }

  /// `W`, `W(c)` or `W(c, mb: m)`.
  bool issueDeferred(const ast::ActionStmt *stmt, KindId kind,
                     const std::optional<ChunkArg> &chunkArg,
                     std::optional<int64_t> microbatch) {
    StringRef mnemonic = module.kinds[kind].mnemonic;
    Chunk *chunk = nullptr;
    if (chunkArg || microbatch) {
      chunk = resolve(chunkArg, stmt->range, mnemonic);
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
    ++issuedOf(*entry.chunk, kind);
    ++progress;
    return emit(kind, *entry.chunk, entry.microbatch, stmt);
  }

  bool isOverdue(SourceRange) const {
    int64_t size = state.queue.size();
    return size != 0 && size > *defer.lag;
  }
  bool takeOldest(const ast::Stmt *stmt) {
    return take(defer.kind, *state.queue.oldest(nullptr), stmt);
  }

  bool drain(Chunk *chunk, const ast::DrainStmt *stmt) {
    KindId kind(evaluator.slotOf(stmt));
    while (DeferredQueue::Entry *entry = state.queue.oldest(chunk))
      if (!take(kind, *entry, stmt))
        return false;
    return true;
  }

  /// Whether a limit was reached: no rank goes on.
  bool isStopped() const { return stopped || sites.isFull; }

  const Module &module;
  Instance instance;
  Program program;
  const Limits &limits;
  const SourceManager &sources;
  DiagnosticEngine &diags;
  SiteTable sites;
  /// The stages of each rank, pipe after pipe, ascending.
  std::vector<SmallVector<std::pair<PipeId, StageId>, 2>> hosted;

  RankId rank;                             ///< That is laid out.
  const ast::OnRankItem *onRank = nullptr; ///< Of it.
  PhaseId phase;
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
