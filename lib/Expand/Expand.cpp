// Lays out the program of each rank.
#include "ppcc/Expand/Expand.h"

#include "Insert.h"
#include "RankState.h"
#include "ppcc/Sema/Walk.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"

#include <set>

using namespace ppcc;
using namespace ppcc::sema;
using llvm::cast;
using llvm::StringRef;

namespace {

/// Places that actions may come from; each way of calls that leads to one
/// counts.
constexpr uint32_t maxSites = 1u << 22;

class Expander final : Counters {
public:
  Expander(const Module &module, Instance instance, const Limits &limits,
           Evaluator &evaluator, const SourceManager &sources,
           DiagnosticEngine &diags)
      : module(module), instance(std::move(instance)),
        program(std::move(this->instance.program)), limits(limits),
        evaluator(evaluator), sources(sources), diags(diags),
        phaseOf(module.stmts.size()), siteOf(module.stmts.size()) {
    for (size_t whole = 0; whole != module.kinds.size(); ++whole)
      for (size_t part = 0; part != module.kinds.size(); ++part)
        if (std::optional<KindId> rest =
                module.kinds.without(KindId(whole), KindId(part));
            rest &&
            (module.kinds[KindId(part)].needs & module.kinds[*rest].defines)) {
          leaves.try_emplace(rest->value, KindId(part));
          isDeferred.insert(part);
        }
  }

  std::optional<Program> run() {
    size_t before = diags.errorCount();
    reserve();
    chunksOfRanks();
    evaluator.counters = this;
    const ast::OnRankItem &onRank = *instance.schedule->onRank;
    for (uint32_t r = 0; r != program.numRanks() && !diags.saturated() &&
                         !stopped && evaluator.hasSteps();
         ++r) {
      rank = RankId(r);
      begin(r);
      program.editRows().beginRank();
      evaluator.clearFailed();
      size_t previous = evaluator.pushFrame(instance.schedule->numLocals);
      evaluator.local(0) = {.i = r};
      bool ok = body(onRank.body);
      evaluator.popFrame(previous);
      if (ok)
        checkLeftPending();
    }
    evaluator.counters = nullptr;
    if (diags.errorCount() != before)
      return std::nullopt;
    if (!followRules(instance.rules, limits, evaluator, sources, diags,
                     program))
      return std::nullopt;
    dropUnusedKinds();
    return std::move(program);
  }

private:
  /// Files may declare many kinds; a program has those that it uses.
  void dropUnusedKinds() {
    llvm::BitVector used(program.kinds().size());
    // Graphs of nodes have numbers of kinds too.
    if (!program.kinds().hasDeclared() || !program.nodes().empty())
      return;
    for (uint32_t row = 0; row != program.size(); ++row)
      used.set(program[ActionId(row)].kind.value);
    std::vector<KindId> renumbered;
    KindTable kinds = program.kinds().pruned(std::move(used), renumbered);
    program.setKinds(std::move(kinds), renumbered);
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

  /// The stages of each rank, pipe after pipe, ascending.
  void chunksOfRanks() {
    chunkStart.assign(program.numRanks() + 1, 0);
    for (const Pipe &pipe : program.pipes())
      for (RankId host : pipe.rankOfStage)
        ++chunkStart[host.value + 1];
    for (uint32_t r = 0; r != program.numRanks(); ++r)
      chunkStart[r + 1] += chunkStart[r];
    chunkStage.resize(chunkStart.back());
    std::vector<uint32_t> next(chunkStart.begin(), chunkStart.end() - 1);
    for (size_t p = 0; p != program.pipes().size(); ++p)
      for (uint32_t s = 0; s != program.pipes()[p].numStages(); ++s)
        chunkStage[next[program.pipes()[p].rankOfStage[s].value]++] = {
            PipeId(p), StageId(s)};
  }

  void begin(uint32_t r) {
    chunks.resize(chunkStart[r + 1] - chunkStart[r]);
    for (size_t i = 0; i != chunks.size(); ++i) {
      auto [pipe, stage] = chunkStage[chunkStart[r] + i];
      Chunk &chunk = chunks[i];
      chunk.pipe = pipe;
      chunk.stage = stage;
      chunk.padded = instance.padded[pipe.value];
      std::fill(std::begin(chunk.issued), std::end(chunk.issued), 0);
      chunk.queued.clear();
      chunk.firstQueued = 0;
      chunk.placeOf.clear();
      chunk.pending = 0;
      if (module.kinds.hasDeclared())
        chunk.issuedDeclared.assign(module.kinds.size(), 0);
    }
    issuedOfRank.assign(module.kinds.size(), 0);
    queue.clear();
    phase = PhaseId();
    caller = SiteId();
    defer = {};
    inGroup = false;
  }

  void checkLeftPending() {
    const DeferredQueue::Entry *entry = queue.oldest();
    if (!entry)
      return;
    const Chunk &chunk = chunks[entry->chunk];
    StringRef letters = module.kinds[entry->kind].letters;
    const Pipe &pipe = program.pipes()[chunk.pipe.value];
    if (!evaluator.fail(diag::LeftPending, instance.schedule->onRank->range))
      return;
    auto builder = diags.report<diag::LeftPending>(
        instance.schedule->onRank->range, rank.value, queue.size(), letters,
        fmt::format("{}{}{}", chunk.stage.value, letters,
                    pipe.firstMicrobatch + entry->microbatch));
    if (SourceLoc at = siteLoc.lookup(entry->site.value); at.valid())
      builder.note(at, "it was left by this action");
  }

  // ---- Statements ----

  /// Runs statements in order; false when the rank cannot go on.
  bool body(ast::Body statements) {
    return walk(evaluator, statements,
                [this](const ast::Stmt *stmt) { return statement(stmt); });
  }

  bool statement(const ast::Stmt *stmt) {
    using ast::StmtKind;
    switch (stmt->kind) {
    case StmtKind::Phase: {
      auto *s = cast<ast::PhaseStmt>(stmt);
      PhaseId outer = std::exchange(phase, phaseOfStatement(*s));
      bool ok = !evaluator.failed() && body(s->body);
      phase = outer;
      return ok;
    }
    case StmtKind::While:
      return whileLoop(cast<ast::WhileStmt>(stmt));
    case StmtKind::Overlap: {
      inGroup = true;
      groupRows = 0;
      bool ok = body(cast<ast::OverlapStmt>(stmt)->body);
      inGroup = false;
      return ok && takeLate(stmt);
    }
    case StmtKind::Defer: {
      auto *s = cast<ast::DeferStmt>(stmt);
      std::optional<int64_t> lag;
      if (s->lag)
        lag = evaluator.evalInt(s->lag);
      if (evaluator.failed())
        return false;
      Defer outer = std::exchange(
          defer, Defer{true, KindId(evaluator.slotOf(s->id)), lag});
      bool ok = body(s->body);
      defer = outer;
      return ok;
    }
    case StmtKind::Drain:
      return drain(cast<ast::DrainStmt>(stmt));
    case StmtKind::Action:
      return module.stmts[stmt->id].isBlock
                 ? call(cast<ast::ActionStmt>(stmt))
                 : action(cast<ast::ActionStmt>(stmt));
    default:
      llvm_unreachable("the check refuses it among what ranks do");
    }
  }

  bool whileLoop(const ast::WhileStmt *stmt) {
    while (true) {
      bool goOn = evaluator.evalBool(stmt->condition);
      if (evaluator.failed())
        return false;
      if (!goOn)
        return true;
      // Nothing but the counters changes, so a turn that leaves them alone is
      // the first of endlessly many.
      uint64_t before = progress;
      if (!body(stmt->body))
        return false;
      if (progress == before) {
        if (evaluator.fail(diag::EndlessWhile, stmt->range))
          diags.report<diag::EndlessWhile>(stmt->range)
              .note({}, "on rank {}", rank.value);
        return false;
      }
    }
  }

  bool call(const ast::ActionStmt *stmt) {
    const Block &block = module.blocks[module.stmts[stmt->id].index];
    llvm::SmallVector<Value, 4> args;
    for (size_t i = 0; i != stmt->args.size(); ++i)
      args.push_back(evaluator.evalAs(stmt->args[i].value, block.params[i]));
    if (evaluator.failed())
      return false;
    SiteId outer = std::exchange(caller, site(stmt));
    if (stopped)
      return false;
    size_t previous = evaluator.pushFrame(block.numLocals);
    for (size_t i = 0; i != args.size(); ++i)
      evaluator.local(i) = args[i];
    bool ok = body(block.item->body);
    evaluator.popFrame(previous);
    caller = outer;
    return ok;
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
    if (!program.hasBackward() && !info->isDeclared() &&
        info->defines != slot::Output) {
      if (evaluator.fail(diag::BackwardOff, stmt->range))
        diags.report<diag::BackwardOff>(stmt->range, info->letters);
      return false;
    }
    if (isDeferred.count(kind.value))
      return takeNamed(stmt, kind, chunkArg, microbatch);
    if (defer.active)
      if (std::optional<KindId> rest = module.kinds.without(kind, defer.kind)) {
        kind = *rest;
        info = &module.kinds[kind];
      }

    Chunk *chunk = info->scope == KindScope::Rank
                       ? anyChunk(stmt->range)
                       : resolve(chunkArg ? &*chunkArg : nullptr, stmt->range,
                                 info->letters);
    if (!chunk)
      return false;
    const Pipe &pipe = program.pipes()[chunk->pipe.value];
    uint64_t &issued = issuedOf(*chunk, kind);
    uint64_t index = info->scope == KindScope::Microbatch ? issued : 0;
    if (microbatch) {
      if (*microbatch < pipe.firstMicrobatch ||
          uint64_t(*microbatch) - pipe.firstMicrobatch >= chunk->padded) {
        if (evaluator.fail(diag::MicrobatchOutOfRange, stmt->range))
          diags
              .report<diag::MicrobatchOutOfRange>(
                  stmt->range, *microbatch, chunk->stage.value,
                  pipe.firstMicrobatch, pipe.firstMicrobatch + chunk->padded)
              .note({}, "on rank {}", rank.value);
        return false;
      }
      index = *microbatch - pipe.firstMicrobatch;
    } else if (index < chunk->padded) {
      index = inOrder(pipe, *info, index);
    } else {
      if (evaluator.fail(diag::NoMicrobatchLeft, stmt->range))
        diags
            .report<diag::NoMicrobatchLeft>(stmt->range, info->letters,
                                            chunk->padded, chunk->stage.value)
            .note({}, "on rank {}", rank.value);
      return false;
    }
    ++issued;
    ++progress;
    SiteId at = site(stmt);
    if (auto owed = leaves.find(kind.value); owed != leaves.end())
      queue.push(chunks, {static_cast<uint32_t>(chunk - chunks.data()),
                          static_cast<uint32_t>(index), owed->second, at});
    return emit(kind, *chunk, index, at, stmt) && (inGroup || takeLate(stmt));
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
  bool emit(KindId kind, const Chunk &chunk, uint64_t index, SiteId at,
            const ast::Stmt *stmt) {
    if (stopped)
      return false;
    if (++laidOut > limits.maxActions) {
      diags.report<diag::TooManyActions>(stmt->range, laidOut,
                                         limits.maxActions);
      stopped = true;
      return false;
    }
    const Pipe &pipe = program.pipes()[chunk.pipe.value];
    if (index >= pipe.numMicrobatches)
      return true;
    Action row;
    row.kind = kind;
    row.pipe = chunk.pipe;
    row.stage = chunk.stage;
    row.microbatch = module.kinds[kind].scope == KindScope::Microbatch
                         ? static_cast<uint32_t>(pipe.firstMicrobatch + index)
                         : Action::noMicrobatch;
    row.phase = phase;
    row.site = at;
    row.joined = inGroup && groupRows++ != 0;
    program.editRows().append(row);
    return true;
  }

  /// `W`, `W(c)` or `W(c, mb: m)`.
  bool takeNamed(const ast::ActionStmt *stmt, KindId kind,
                 const std::optional<ChunkArg> &chunkArg,
                 std::optional<int64_t> microbatch) {
    const DeferredQueue::Entry *entry;
    std::string where;
    if (chunkArg || microbatch) {
      Chunk *chunk = resolve(chunkArg ? &*chunkArg : nullptr, stmt->range,
                             module.kinds[kind].letters);
      if (!chunk)
        return false;
      const Pipe &pipe = program.pipes()[chunk->pipe.value];
      if (microbatch) {
        entry = *microbatch < pipe.firstMicrobatch
                    ? nullptr
                    : queue.find(*chunk, *microbatch - pipe.firstMicrobatch);
        if (!entry) {
          if (evaluator.fail(diag::NotPending, stmt->range))
            diags
                .report<diag::NotPending>(
                    stmt->range,
                    fmt::format("{}{}{}", chunk->stage.value,
                                module.kinds[kind].letters, *microbatch))
                .note({}, "on rank {}", rank.value);
          evaluator.clearFailed();
          return true;
        }
      } else {
        entry = queue.oldest(*chunk);
        where = fmt::format(" of stage {}", chunk->stage.value);
      }
    } else {
      entry = queue.oldest();
    }
    if (!entry) {
      if (evaluator.fail(diag::EmptyQueue, stmt->range))
        diags
            .report<diag::EmptyQueue>(stmt->range, module.kinds[kind].letters,
                                      where)
            .note({}, "on rank {}", rank.value);
      evaluator.clearFailed();
      return true;
    }
    return take(kind, entry, stmt);
  }

  bool take(KindId kind, const DeferredQueue::Entry *entry,
            const ast::Stmt *stmt) {
    DeferredQueue::Entry taken = *entry;
    queue.take(chunks, entry);
    Chunk &chunk = chunks[taken.chunk];
    ++issuedOf(chunk, kind);
    ++progress;
    return emit(kind, chunk, taken.microbatch, site(stmt), stmt);
  }

  /// The deferred actions above the lag.
  bool takeLate(const ast::Stmt *stmt) {
    if (!defer.active || !defer.lag)
      return true;
    while (queue.size() != 0 && static_cast<int64_t>(queue.size()) > *defer.lag)
      if (!take(defer.kind, queue.oldest(), stmt))
        return false;
    return true;
  }

  bool drain(const ast::DrainStmt *stmt) {
    KindId kind = KindId(module.stmts[stmt->id].index);
    Chunk *chunk = nullptr;
    if (stmt->chunk) {
      ChunkArg arg = evaluator.evalChunk(stmt->chunk);
      chunk = evaluator.failed()
                  ? nullptr
                  : resolve(&arg, stmt->range, module.kinds[kind].letters);
      if (!chunk)
        return false;
    }
    while (const DeferredQueue::Entry *entry =
               chunk ? queue.oldest(*chunk) : queue.oldest())
      if (!take(kind, entry, stmt))
        return false;
    return true;
  }

  // ---- Chunks and counters ----

  /// Counts the actions of a kind that a chunk, or its rank, has issued.
  uint64_t &issuedOf(Chunk &chunk, KindId kind) {
    const KindInfo &info = module.kinds[kind];
    if (info.scope == KindScope::Rank)
      return issuedOfRank[kind.value];
    if (info.isDeclared())
      return chunk.issuedDeclared[kind.value];
    return chunk.issued[llvm::countr_zero(unsigned(info.mainSlot()))];
  }

  /// The chunk that an action of the rank stands with.
  Chunk *anyChunk(SourceRange range) {
    if (!chunks.empty())
      return &chunks.front();
    if (evaluator.fail(diag::NoChunk, range))
      diags.report<diag::NoChunk>(range, rank.value, "");
    return nullptr;
  }

  /// The chunk that an argument, or its absence, names on this rank; null after
  /// reporting that there is none.
  Chunk *resolve(const ChunkArg *arg, SourceRange range, StringRef letters) {
    if (!arg) {
      if (chunks.size() == 1)
        return &chunks.front();
      if (chunks.empty()) {
        if (evaluator.fail(diag::NoChunk, range))
          diags.report<diag::NoChunk>(range, rank.value, "");
      } else if (evaluator.fail(diag::WhichChunk, range)) {
        diags.report<diag::WhichChunk>(range, rank.value, chunks.size(), "",
                                       letters);
      }
      return nullptr;
    }
    if (!arg->isPipe) {
      if (arg->value >= 0 && uint64_t(arg->value) < chunks.size())
        return &chunks[arg->value];
      if (evaluator.fail(diag::ChunkOutOfRange, arg->range))
        diags.report<diag::ChunkOutOfRange>(arg->range, rank.value, arg->value)
            .note({}, "rank {} has {} chunk{}", rank.value, chunks.size(),
                  chunks.size() == 1 ? "" : "s");
      return nullptr;
    }
    const PipePart &part = instance.parts[arg->value];
    Chunk *found = nullptr;
    size_t matches = 0;
    for (Chunk &chunk : chunks)
      if (part.has(chunk.pipe, chunk.stage) && ++matches == 1)
        found = &chunk;
    if (matches == 1)
      return found;
    std::string ofPipe = fmt::format(
        " of {} `{}`",
        size_t(arg->value) < program.pipes().size() ? "pipe" : "module",
        part.name);
    if (matches == 0) {
      if (evaluator.fail(diag::NoChunk, arg->range))
        diags.report<diag::NoChunk>(arg->range, rank.value, ofPipe);
    } else if (evaluator.fail(diag::WhichChunk, arg->range)) {
      diags.report<diag::WhichChunk>(arg->range, rank.value, matches, ofPipe,
                                     letters);
    }
    return nullptr;
  }

  std::optional<int64_t> issued(KindId kind, const ChunkArg *arg,
                                SourceRange range) override {
    const KindInfo &info = module.kinds[kind];
    Chunk *chunk = info.scope == KindScope::Rank && !arg
                       ? anyChunk(range)
                       : resolve(arg, range, info.letters);
    if (!chunk)
      return std::nullopt;
    return issuedOf(*chunk, kind);
  }

  std::optional<int64_t> pending(const ChunkArg *arg,
                                 SourceRange range) override {
    if (!arg)
      return queue.size();
    Chunk *chunk = resolve(arg, range, "pending");
    if (!chunk)
      return std::nullopt;
    return chunk->pending;
  }

  std::optional<int64_t> padded(const ChunkArg *arg,
                                SourceRange range) override {
    if (!arg && program.pipes().size() == 1)
      return instance.padded.front();
    if (arg && arg->isPipe)
      return instance.padded[instance.parts[arg->value].pipe.value];
    Chunk *chunk = resolve(arg, range, "padded");
    if (!chunk)
      return std::nullopt;
    return chunk->padded;
  }

  // ---- Phases and sites ----

  PhaseId phaseOfStatement(const ast::PhaseStmt &stmt) {
    PhaseId &known = phaseOf[stmt.id];
    if (known.value == 0) {
      if (program.phases().size() > Program::maxPhases) {
        if (evaluator.fail(diag::OutOfRange, stmt.name.range))
          diags.report<diag::OutOfRange>(
              stmt.name.range, "the number of phases", program.phases().size(),
              0, Program::maxPhases);
        return PhaseId();
      }
      known = program.editHead().phase(stmt.name.text);
    }
    return known;
  }

  /// The site of a statement in the block call that is being laid out.
  SiteId site(const ast::Stmt *stmt) {
    SiteCache &cache = siteOf[stmt->id];
    if (cache.site.value != 0 && cache.caller == caller)
      return cache.site;
    SiteId &known = sites[{stmt->id, caller.value}];
    if (known.value == 0) {
      if (program.sites().size() > maxSites) {
        diags.report<diag::OutOfRange>(
            stmt->range, "the number of places with their calls of blocks",
            program.sites().size(), 0, maxSites);
        stopped = true;
        return SiteId();
      }
      Position at = sources.position(stmt->range.begin);
      Head &head = program.editHead();
      known = head.addSite({head.file(at.file), at.line, at.column, caller});
      siteLoc[known.value] = stmt->range.begin;
    }
    cache = {caller, known};
    return known;
  }

  struct Defer {
    bool active = false;
    KindId kind;
    std::optional<int64_t> lag;
  };
  struct SiteCache {
    SiteId caller, site;
  };

  const Module &module;
  Instance instance;
  Program program;
  const Limits &limits;
  Evaluator &evaluator;
  const SourceManager &sources;
  DiagnosticEngine &diags;

  llvm::DenseMap<uint32_t, KindId>
      leaves;                    ///< By kind: what it leaves on the queue.
  std::set<uint32_t> isDeferred; ///< Kinds that are taken from the queue.

  std::vector<uint32_t> chunkStart; ///< By rank, into chunkStage.
  std::vector<std::pair<PipeId, StageId>> chunkStage;

  RankId rank;
  std::vector<Chunk> chunks;
  std::vector<uint64_t> issuedOfRank; ///< By kind; of those with one a rank.
  DeferredQueue queue;
  PhaseId phase;
  SiteId caller;
  Defer defer;
  bool inGroup = false;
  uint32_t groupRows = 0;
  uint64_t progress = 0;
  uint64_t laidOut = 0; ///< Actions of all ranks, those for padding included.
  bool stopped = false; ///< A limit was reached: no rank goes on.

  std::vector<PhaseId> phaseOf;
  std::vector<SiteCache> siteOf;
  llvm::DenseMap<std::pair<uint32_t, uint32_t>, SiteId> sites;
  llvm::DenseMap<uint32_t, SourceLoc> siteLoc;
};

} // namespace

std::optional<Program> ppcc::expand(const Module &module, Instance instance,
                                    const Limits &limits, Evaluator &evaluator,
                                    const SourceManager &sources,
                                    DiagnosticEngine &diags) {
  return Expander(module, std::move(instance), limits, evaluator, sources,
                  diags)
      .run();
}
