#include "RankState.h"

using namespace ppcc;

void DeferredQueue::push(std::vector<Chunk> &chunks, Entry entry) {
  Chunk &owner = chunks[entry.chunk];
  uint32_t place = static_cast<uint32_t>(entries.size());
  entries.push_back(entry);
  owner.queued.push_back(place);
  if (!owner.placeOf.empty())
    owner.placeOf[entry.microbatch] = place + 1;
  ++owner.pending;
  ++count;
}

const DeferredQueue::Entry *DeferredQueue::oldest() {
  while (first != entries.size() && entries[first].taken)
    ++first;
  return first == entries.size() ? nullptr : &entries[first];
}

const DeferredQueue::Entry *DeferredQueue::oldest(Chunk &chunk) {
  while (chunk.firstQueued != chunk.queued.size() &&
         entries[chunk.queued[chunk.firstQueued]].taken)
    ++chunk.firstQueued;
  return chunk.firstQueued == chunk.queued.size()
             ? nullptr
             : &entries[chunk.queued[chunk.firstQueued]];
}

const DeferredQueue::Entry *DeferredQueue::find(Chunk &chunk,
                                                uint64_t microbatch) {
  if (chunk.placeOf.empty() && chunk.padded) {
    chunk.placeOf.resize(chunk.padded);
    for (uint32_t place : chunk.queued)
      chunk.placeOf[entries[place].microbatch] = place + 1;
  }
  if (microbatch >= chunk.placeOf.size() || !chunk.placeOf[microbatch])
    return nullptr;
  const Entry &entry = entries[chunk.placeOf[microbatch] - 1];
  return entry.taken ? nullptr : &entry;
}

void DeferredQueue::take(std::vector<Chunk> &chunks, const Entry *entry) {
  entries[entry - entries.data()].taken = true;
  --chunks[entry->chunk].pending;
  --count;
}
