// The actions of a rank that are deferred, such as weight gradients.
#pragma once

#include "ppcc/Basic/Source.h"
#include "ppcc/IR/Program.h"

namespace ppcc {

/// A stage on its rank.
struct Chunk {
  PipeId pipe;
  StageId stage;
  uint64_t padded = 0;          ///< Microbatches that the order counts with.
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

} // namespace ppcc
