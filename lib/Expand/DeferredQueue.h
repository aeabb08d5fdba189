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

  void push(Entry entry) {
    Chunk &owner = *entry.chunk;
    owner.queued.push_back(uint32_t(entries.size()));
    entries.push_back(entry);
    if (!owner.lastOf.empty())
      link(owner, owner.queued.back());
    ++owner.pending;
    ++count;
  }
  /// The oldest entry that is not taken, of one chunk or, if null, of any.
  Entry *oldest(Chunk *chunk) {
    size_t &next = chunk ? chunk->firstQueued : first;
    size_t end = chunk ? chunk->queued.size() : entries.size();
    for (; next != end; ++next)
      if (Entry &entry = entries[chunk ? chunk->queued[next] : next];
          !entry.taken)
        return &entry;
    return nullptr;
  }
  /// The oldest of this chunk and microbatch.
  Entry *find(Chunk &chunk, uint64_t microbatch) {
    if (chunk.lastOf.empty() && chunk.padded) {
      chunk.lastOf.resize(chunk.padded);
      for (uint32_t place : chunk.queued)
        link(chunk, place);
    }
    if (microbatch >= chunk.lastOf.size() || !chunk.lastOf[microbatch])
      return nullptr;
    Entry *last = &entries[chunk.lastOf[microbatch] - 1];
    Entry *oldest = &entries[last->next];
    while (oldest->taken && oldest != last) {
      last->next = oldest->next;
      oldest = &entries[last->next];
    }
    return oldest->taken ? nullptr : oldest;
  }
  void take(Entry &entry) {
    entry.taken = true;
    --entry.chunk->pending;
    --count;
  }

private:
  void link(Chunk &chunk, uint32_t place) {
    uint32_t &last = chunk.lastOf[entries[place].microbatch];
    entries[place].next =
        last ? std::exchange(entries[last - 1].next, place) : place;
    last = place + 1;
  }

  std::vector<Entry> entries;
  size_t first = 0;
  uint64_t count = 0;
};

} // namespace ppcc
