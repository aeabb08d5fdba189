// Runs the body of `on rank` on numbers of a domain: groups, what is deferred,
// blocks and counters.
#pragma once

#include "ppcc/Model/Instance.h"

#include "llvm/Support/SaveAndRestore.h"

namespace ppcc::sema {

/// What the statements of a rank mean. `Run`, which derives from this, gives
/// - emit(kind, chunk, index, stmt): adds an action, of the microbatch `index`
///   counted from the first of the pipe;
/// - admits(info, stmt): whether such actions can stand here;
/// - choose(stmt, info, chunk, microbatch, index): checks the microbatch that
///   an action names or, without a name, changes `index`, so many as were
///   issued, to that of the action;
/// - enqueue(chunk, index, kind, stmt), pendingOf(chunk or null, range),
///   isOverdue(range), takeOldest(stmt), drain(chunk or null, stmt) and
///   issueDeferred(stmt, kind, chunkArg, microbatch), on the queue;
/// - isIn(part, chunk) and pipeOf(part), of a value of type pipe or part;
/// - unresolved(arg, range, mnemonic, matches) and endless(stmt): report.
/// A `Chunk` has a pipe. What gives a bool, or a pointer, gives false, or null,
/// after it has reported an error.
template <class Run, class Evaluator, class Chunk, class Queue> class RankBody {
protected:
  using Number = typename Evaluator::Number;

  /// What actions change.
  struct State {
    std::vector<Number> issued; ///< By chunk and counter, padding included.
    Queue queue;                ///< What is pending.
    bool operator==(const State &) const = default;
  };
  struct Defer {
    bool active = false;
    KindId kind;
    std::optional<Number> lag, cap;
    bool isFill = false; ///< Nothing is left on the queue.
  };

  explicit RankBody(Evaluator &evaluator)
      : evaluator(evaluator), kinds(evaluator.module.kinds),
        numCounters(slot::count + kinds.size()) {
    for (KindId whole : kinds.ids())
      for (KindId part : kinds.ids())
        if (auto rest = kinds.without(whole, part);
            rest && (kinds[part].needs & kinds[*rest].defines)) {
          deferredBy.try_emplace(rest->value, part);
          deferred.insert(part.value);
        }
  }

  /// Begins a rank of the `chunks`.
  void beginRank() {
    state = {};
    state.issued.resize(chunks.size() * numCounters);
    defer = {};
    inGroup = false;
  }

  /// Runs statements in order; false when the rank cannot go on.
  bool body(ast::Body statements) {
    return evaluator.walk(statements, [this](const ast::Stmt *stmt) {
      return ast::dispatch(
          stmt, [this](const auto &node) { return self().run(&node); });
    });
  }

  bool run(const ast::Stmt *) {
    llvm_unreachable("the check refuses it among what ranks do");
  }

  bool run(const ast::PhaseStmt *stmt) { return body(stmt->body); }

  bool run(const ast::OverlapStmt *stmt) {
    inGroup = true;
    groupRows = 0;
    bool ok = body(stmt->body);
    inGroup = false;
    return ok && issueOverdue(stmt);
  }

  bool run(const ast::DeferStmt *stmt) {
    auto number = [&](const ast::Expr *expr) {
      return expr ? std::optional(evaluator.evalInt(expr)) : std::nullopt;
    };
    Defer inner{true, KindId(evaluator.slotOf(stmt)), number(stmt->lag),
                number(stmt->cap), !stmt->fill.text.empty()};
    if (evaluator.failed())
      return false;
    llvm::SaveAndRestore inDefer(defer, std::move(inner));
    return self().runDefer(stmt);
  }
  bool runDefer(const ast::DeferStmt *stmt) { return body(stmt->body); }

  bool run(const ast::WhileStmt *stmt) {
    while (true) {
      bool goOn = evaluator.evalBool(stmt->condition);
      if (evaluator.failed())
        return false;
      if (!goOn)
        return true;
      if (!iterate(stmt))
        return false;
    }
  }
  bool iterate(const ast::WhileStmt *stmt) {
    // Nothing but the counters changes, so an iteration that leaves them alone
    // is the first of endlessly many.
    uint64_t before = progress;
    size_t mark = evaluator.mark();
    if (!body(stmt->body))
      return false;
    evaluator.release(mark);
    return progress != before || self().endless(stmt);
  }

  bool run(const ast::DrainStmt *stmt) {
    Chunk *chunk = nullptr;
    if (stmt->chunk) {
      ChunkArg arg = evaluator.evalChunk(stmt->chunk);
      if (evaluator.failed())
        return false;
      chunk = resolve(arg, stmt->range,
                      kinds[KindId(evaluator.slotOf(stmt))].mnemonic);
      if (!chunk)
        return false;
    }
    return self().drain(chunk, stmt);
  }

  bool run(const ast::ActionStmt *stmt) {
    return evaluator.module.stmts[stmt->id].isBlock ? self().call(stmt)
                                                    : action(stmt);
  }

  bool call(const ast::ActionStmt *stmt) {
    const Block &block = evaluator.module.blocks[evaluator.slotOf(stmt)];
    SmallVector<typename Evaluator::Value, 4> args;
    for (size_t i = 0; i != stmt->args.size(); ++i)
      args.push_back(evaluator.evalAs(stmt->args[i].value, block.params[i]));
    if (evaluator.failed())
      return false;
    typename Evaluator::Frame frame(evaluator, block.numLocals, args);
    return body(block.item->body);
  }

  bool action(const ast::ActionStmt *stmt) {
    KindId kind(evaluator.slotOf(stmt));
    std::optional<ChunkArg> chunkArg;
    std::optional<Number> microbatch;
    for (const ast::Argument &arg : stmt->args)
      if (arg.label.text.empty())
        chunkArg = evaluator.evalChunk(arg.value);
      else
        microbatch = evaluator.evalInt(arg.value);
    if (evaluator.failed())
      return false;
    if (deferred.count(kind.value) && !defer.isFill)
      return self().issueDeferred(stmt, kind, chunkArg, microbatch);
    if (defer.active)
      if (std::optional<KindId> rest = kinds.without(kind, defer.kind))
        kind = *rest;
    const KindInfo &info = kinds[kind];
    if (!self().admits(info, stmt))
      return false;
    Chunk *chunk = chunkFor(kind, chunkArg, stmt->range);
    if (!chunk)
      return false;
    Number &issued = issuedOf(*chunk, kind);
    Number index = info.scope == KindScope::Microbatch ? issued : Number();
    if (!self().choose(stmt, info, *chunk, microbatch, index))
      return false;
    issued = issued + 1;
    ++progress;
    if (auto left = deferredBy.find(kind.value);
        left != deferredBy.end() && !defer.isFill)
      self().enqueue(*chunk, index, left->second, stmt);
    return self().emit(kind, *chunk, index, stmt) &&
           (inGroup || issueOverdue(stmt));
  }

  /// Issues the deferred actions above the lag.
  bool issueOverdue(const ast::Stmt *stmt) {
    if (defer.active && defer.lag && !defer.isFill)
      while (self().isOverdue(stmt->range))
        if (!self().takeOldest(stmt))
          return false;
    return true;
  }

  /// Counts the actions of a kind that a chunk, or its rank, has issued.
  Number &issuedOf(const Chunk &chunk, KindId kind) {
    const KindInfo &info = kinds[kind];
    size_t number = info.scope == KindScope::Rank ? 0 : &chunk - chunks.data();
    return state.issued[number * numCounters +
                        (info.isDeclared()
                             ? slot::count + kind.value
                             : std::countr_zero(unsigned(info.mainSlot())))];
  }

  /// The chunk that an argument, or its absence, names on this rank.
  Chunk *resolve(const std::optional<ChunkArg> &arg, SourceRange range,
                 StringRef mnemonic) {
    Chunk *found = nullptr;
    size_t matches = 0;
    if (arg && !arg->isPipe) {
      if (arg->value >= 0 && uint64_t(arg->value) < chunks.size())
        return &chunks[arg->value];
    } else {
      for (Chunk &chunk : chunks)
        if ((!arg || self().isIn(arg->value, chunk)) && ++matches == 1)
          found = &chunk;
    }
    return matches == 1 ? found
                        : self().unresolved(arg, range, mnemonic, matches);
  }
  /// The chunk that an action of a kind stands with: of a rank, any.
  Chunk *chunkFor(KindId kind, const std::optional<ChunkArg> &arg,
                  SourceRange range) {
    const KindInfo &info = kinds[kind];
    return info.scope == KindScope::Rank && !arg && !chunks.empty()
               ? &chunks.front()
               : resolve(arg, range, info.mnemonic);
  }

  /// See sema::Counter.
  std::optional<Number> counterOf(Builtin id, KindId kind,
                                  const std::optional<ChunkArg> &arg,
                                  SourceRange range) {
    bool isPadded = id == Builtin::Padded;
    if (id == Builtin::Pending && !arg)
      return self().pendingOf(nullptr, range);
    if (isPadded && !arg && padded.size() == 1)
      return padded.front();
    if (isPadded && arg && arg->isPipe)
      return padded[self().pipeOf(arg->value).value];
    Chunk *chunk = id == Builtin::Issued
                       ? chunkFor(kind, arg, range)
                       : resolve(arg, range, isPadded ? "padded" : "pending");
    if (!chunk)
      return std::nullopt;
    return id == Builtin::Issued ? issuedOf(*chunk, kind)
           : isPadded            ? padded[chunk->pipe.value]
                                 : self().pendingOf(chunk, range);
  }

  Evaluator &evaluator;
  const KindTable &kinds;
  std::vector<Number> padded; ///< By pipe: microbatches that the order counts
                              ///< with.
  std::vector<Chunk> chunks;  ///< Of the rank.
  State state;
  Defer defer;
  bool inGroup = false;
  uint32_t groupRows = 0; ///< Of the group so far.
  uint64_t progress = 0;  ///< Actions that were issued, of all ranks.
  DenseMap<uint32_t, KindId> deferredBy; ///< By kind: what it leaves behind.

private:
  Run &self() { return static_cast<Run &>(*this); }

  size_t numCounters;
  std::set<uint32_t> deferred; ///< Kinds that are left behind.
};

} // namespace ppcc::sema
