// What a rank has issued so far, and which weight gradients it still owes.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Sema/Instance.h"

namespace ppcc {

/// A stage on its rank.
struct Chunk {
  PipeId pipe;
  StageId stage;
  uint64_t padded = 0;          ///< Microbatches that the order counts with.
  std::vector<uint64_t> issued; ///< By declared kind, or main slot of others;
                                ///< padding included.
  std::vector<uint32_t> queued; ///< Its places in the rank's queue, in order.
  size_t firstQueued = 0;       ///< Those before it are taken.
  std::vector<uint32_t> lastOf; ///< Place + 1 of the last by microbatch; filled
                                ///< once one is asked for by number.
  uint64_t pending = 0;
};

/// The queue of deferred actions of a rank, first in, first out, with a way to
/// any of them. All operations are O(1) amortised.
class DeferredQueue {
public:
  struct Entry {
    Chunk *chunk;
    uint32_t microbatch; ///< Counted from the first of the pipe.
    KindId kind;         ///< What is pending.
    SourceLoc by;        ///< The action that left it behind.
    bool taken = false;
    uint32_t next = 0; ///< The place of the next of this chunk and microbatch;
                       ///< of the last that of the first.
  };

  void clear() {
    entries.clear();
    first = 0;
    count = 0;
  }
  uint64_t size() const { return count; }

  void push(Entry entry);
  /// The oldest entry that is not taken, of one chunk or, if null, of any.
  Entry *oldest(Chunk *chunk);
  /// The oldest of this chunk and microbatch.
  Entry *find(Chunk &chunk, uint64_t microbatch);
  void take(Entry &entry);

private:
  void link(Chunk &chunk, uint32_t place);

  std::vector<Entry> entries;
  size_t first = 0;
  uint64_t count = 0;
};

/// The rank that is laid out. Chunks that do not exist are reported.
class RankState {
public:
  RankState(const KindTable &kinds, const sema::Instance &instance,
            const Program &program, sema::Evaluator &evaluator,
            DiagnosticEngine &diags)
      : kinds(kinds), instance(instance), program(program),
        evaluator(evaluator), diags(diags), hosted(program.numRanks()) {
    for (PipeId pipe : program.pipeIds())
      for (StageId stage : program.pipe(pipe).stages())
        hosted[program.rankOfStage(pipe, stage).value].push_back({pipe, stage});
  }
  void begin(uint32_t r);

  /// Counts the actions of a kind that a chunk, or its rank, has issued.
  uint64_t &issuedOf(Chunk &chunk, KindId kind);
  /// The chunk that an action of the rank stands with.
  Chunk *anyChunk(SourceRange range);
  /// The chunk that an argument, or its absence, names on this rank; null after
  /// reporting that there is none.
  Chunk *resolve(const std::optional<sema::ChunkArg> &arg, SourceRange range,
                 StringRef mnemonic);

  /// See sema::Counter.
  std::optional<int64_t> count(sema::Builtin id, KindId kind,
                               const std::optional<sema::ChunkArg> &arg,
                               SourceRange range);

  RankId rank;
  std::vector<Chunk> chunks;
  DeferredQueue queue;

private:
  const KindTable &kinds;
  const sema::Instance &instance;
  const Program &program;
  sema::Evaluator &evaluator;
  DiagnosticEngine &diags;
  /// The stages of each rank, pipe after pipe, ascending.
  std::vector<SmallVector<std::pair<PipeId, StageId>, 2>> hosted;
  std::vector<uint64_t> issuedOfRank; ///< By kind; of those with one a rank.
};

} // namespace ppcc
