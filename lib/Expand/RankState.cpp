#include "RankState.h"
#include "ppcc/Basic/Diagnostics/Expand.h"

#include "llvm/ADT/bit.h"

using namespace ppcc;
using namespace ppcc::sema;

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

void RankState::begin(uint32_t r) {
  rank = RankId(r);
  chunks.clear();
  for (auto [pipe, stage] : hosted[r]) {
    Chunk &chunk = chunks.emplace_back();
    chunk.pipe = pipe;
    chunk.stage = stage;
    chunk.padded = instance.padded[pipe.value];
    chunk.issued.assign(kinds.size(), 0);
  }
  issuedOfRank.assign(kinds.size(), 0);
  queue.clear();
}

uint64_t &RankState::issuedOf(Chunk &chunk, KindId kind) {
  const KindInfo &info = kinds[kind];
  if (info.scope == KindScope::Rank)
    return issuedOfRank[kind.value];
  return chunk
      .issued[info.isDeclared() ? kind.value
                                : std::countr_zero(unsigned(info.mainSlot()))];
}

Chunk *RankState::anyChunk(SourceRange range) {
  if (!chunks.empty())
    return &chunks.front();
  evaluator.refuse<diag::NoChunk>(range, rank.value, "");
  return nullptr;
}

Chunk *RankState::resolve(const std::optional<ChunkArg> &arg, SourceRange range,
                          StringRef mnemonic) {
  if (arg && !arg->isPipe) {
    if (arg->value >= 0 && uint64_t(arg->value) < chunks.size())
      return &chunks[arg->value];
    if (!evaluator.fail(diag::ChunkOutOfRange, arg->range))
      return nullptr;
    auto report =
        diags.report<diag::ChunkOutOfRange>(arg->range, rank.value, arg->value);
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
  const StageSet *part = arg ? &instance.parts[arg->value] : nullptr;
  Chunk *found = nullptr;
  size_t matches = 0;
  for (Chunk &chunk : chunks)
    if ((!part || part->has(chunk.pipe, chunk.stage)) && ++matches == 1)
      found = &chunk;
  if (matches == 1)
    return found;
  std::string ofPart;
  if (part) {
    range = arg->range;
    bool isPipe = size_t(arg->value) < instance.schedule->pipes.size() ||
                  size_t(arg->value) >= instance.schedule->pipes.size() +
                                            instance.schedule->parts.size();
    ofPart = fmt::format(" of {} `{}`", isPipe ? "pipe" : "part", part->name);
  }
  if (matches == 0)
    evaluator.refuse<diag::NoChunk>(range, rank.value, ofPart);
  else
    evaluator.refuse<diag::AmbiguousChunk>(range, rank.value, matches, ofPart,
                                           mnemonic);
  return nullptr;
}

std::optional<int64_t> RankState::count(Builtin id, KindId kind,
                                        const std::optional<ChunkArg> &arg,
                                        SourceRange range) {
  bool isIssued = id == Builtin::Issued, isPadded = id == Builtin::Padded;
  if (id == Builtin::Pending && !arg)
    return queue.size();
  if (isPadded && !arg && program.pipes().size() == 1)
    return instance.padded.front();
  if (isPadded && arg && arg->isPipe)
    return instance
        .padded[instance.parts[arg->value].stages.front().pipe.value];
  Chunk *chunk = isIssued && kinds[kind].scope == KindScope::Rank && !arg
                     ? anyChunk(range)
                     : resolve(arg, range,
                               isIssued   ? StringRef(kinds[kind].mnemonic)
                               : isPadded ? "padded"
                                          : "pending");
  if (!chunk)
    return std::nullopt;
  return isIssued   ? issuedOf(*chunk, kind)
         : isPadded ? chunk->padded
                    : chunk->pending;
}
