#include "DeferredQueue.h"

using namespace ppcc;

void DeferredQueue::push(Entry entry) {
  Chunk &owner = *entry.chunk;
  owner.queued.push_back(uint32_t(entries.size()));
  entries.push_back(entry);
  if (!owner.lastOf.empty())
    link(owner, owner.queued.back());
  ++owner.pending;
  ++count;
}

void DeferredQueue::link(Chunk &chunk, uint32_t place) {
  uint32_t &last = chunk.lastOf[entries[place].microbatch];
  entries[place].next =
      last ? std::exchange(entries[last - 1].next, place) : place;
  last = place + 1;
}

DeferredQueue::Entry *DeferredQueue::oldest(Chunk *chunk) {
  size_t &next = chunk ? chunk->firstQueued : first;
  size_t end = chunk ? chunk->queued.size() : entries.size();
  for (; next != end; ++next)
    if (Entry &entry = entries[chunk ? chunk->queued[next] : next];
        !entry.taken)
      return &entry;
  return nullptr;
}

DeferredQueue::Entry *DeferredQueue::find(Chunk &chunk, uint64_t microbatch) {
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

void DeferredQueue::take(Entry &entry) {
  entry.taken = true;
  --entry.chunk->pending;
  --count;
}
