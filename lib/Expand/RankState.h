// What a rank has issued so far, and which weight gradients it still owes.
#pragma once

#include "ppcc/Sema/Instance.h"

#include <optional>
#include <vector>

namespace ppcc {

/// A stage on its rank.
struct Chunk {
  PipeId pipe;
  StageId stage;
  uint64_t padded = 0; ///< Microbatches that the order counts with.
  uint64_t issued[slot::count] = {};    ///< By main slot; padding included.
  std::vector<uint64_t> issuedDeclared; ///< By kind; the built-in ones have 0.
  std::vector<uint32_t> queued;  ///< Its places in the rank's queue, in order.
  size_t firstQueued = 0;        ///< Those before it are taken.
  std::vector<uint32_t> placeOf; ///< Place + 1 by microbatch; filled once one
                                 ///< is asked for by number.
  uint64_t pending = 0;
};

/// The queue of deferred actions of a rank, first in, first out, with a way to
/// any of them. All operations are O(1) amortised.
class DeferredQueue {
public:
  struct Entry {
    uint32_t chunk;
    uint32_t microbatch; ///< Counted from the first of the pipe.
    KindId kind;         ///< What is owed.
    SiteId site;         ///< Of the action that left it behind.
    bool taken = false;
  };

  void clear() {
    entries.clear();
    first = 0;
    count = 0;
  }
  uint64_t size() const { return count; }

  void push(std::vector<Chunk> &chunks, Entry entry);
  /// The oldest entry that is not taken.
  const Entry *oldest();
  /// The oldest of one chunk.
  const Entry *oldest(Chunk &chunk);
  /// The one of this chunk and microbatch.
  const Entry *find(Chunk &chunk, uint64_t microbatch);
  void take(std::vector<Chunk> &chunks, const Entry *entry);

private:
  std::vector<Entry> entries;
  size_t first = 0;
  uint64_t count = 0;
};

} // namespace ppcc
