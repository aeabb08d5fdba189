#include "RankState.h"
#include "ppcc/Basic/Diagnostics/Expand.h"

#include "llvm/ADT/bit.h"

using namespace ppcc;
using namespace ppcc::sema;

void DeferredQueue::push(std::vector<Chunk> &chunks, Entry entry) {
  Chunk &owner = chunks[entry.chunk];
  uint32_t place = uint32_t(entries.size());
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

void RankState::placeChunks() {
  chunkStart.assign(program.numRanks() + 1, 0);
  for (const Pipe &pipe : program.pipes())
    for (RankId host : pipe.rankOfStage)
      ++chunkStart[host.value + 1];
  for (uint32_t r = 0; r != program.numRanks(); ++r)
    chunkStart[r + 1] += chunkStart[r];
  chunkStage.resize(chunkStart.back());
  std::vector<uint32_t> next(chunkStart.begin(), chunkStart.end() - 1);
  for (PipeId p : program.pipeIds())
    for (uint32_t s = 0; s != program.pipe(p).numStages(); ++s)
      chunkStage[next[program.pipe(p).rankOfStage[s].value]++] = {p,
                                                                  StageId(s)};
}

void RankState::begin(uint32_t r) {
  rank = RankId(r);
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
    if (kinds.hasDeclared())
      chunk.issuedDeclared.assign(kinds.size(), 0);
  }
  issuedOfRank.assign(kinds.size(), 0);
  queue.clear();
}

uint64_t &RankState::issuedOf(Chunk &chunk, KindId kind) {
  const KindInfo &info = kinds[kind];
  if (info.scope == KindScope::Rank)
    return issuedOfRank[kind.value];
  if (info.isDeclared())
    return chunk.issuedDeclared[kind.value];
  return chunk.issued[std::countr_zero(unsigned(info.mainSlot()))];
}

Chunk *RankState::anyChunk(SourceRange range) {
  if (!chunks.empty())
    return &chunks.front();
  evaluator.refuse<diag::NoChunk>(range, rank.value, "");
  return nullptr;
}

Chunk *RankState::resolve(const ChunkArg *arg, SourceRange range,
                          StringRef letters) {
  if (arg && !arg->isPipe) {
    if (arg->value >= 0 && uint64_t(arg->value) < chunks.size())
      return &chunks[arg->value];
    if (evaluator.fail(diag::ChunkOutOfRange, arg->range))
      diags.report<diag::ChunkOutOfRange>(arg->range, rank.value, arg->value)
          .note({}, "rank {} has {}", rank.value,
                chunks.size() == 1
                    ? fmt::format("1 chunk; the number of a microbatch stands "
                                  "behind `mb:`, as in `{}(mb: {})`",
                                  letters, arg->value)
                    : fmt::format("{} chunks", chunks.size()));
    return nullptr;
  }
  const PipePart *part = arg ? &instance.parts[arg->value] : nullptr;
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
    evaluator.refuse<diag::WhichChunk>(range, rank.value, matches, ofPart,
                                       letters);
  return nullptr;
}

std::optional<int64_t> RankState::issued(KindId kind, const ChunkArg *arg,
                                         SourceRange range) {
  const KindInfo &info = kinds[kind];
  Chunk *chunk = info.scope == KindScope::Rank && !arg
                     ? anyChunk(range)
                     : resolve(arg, range, info.letters);
  if (!chunk)
    return std::nullopt;
  return issuedOf(*chunk, kind);
}

std::optional<int64_t> RankState::pending(const ChunkArg *arg,
                                          SourceRange range) {
  if (!arg)
    return queue.size();
  Chunk *chunk = resolve(arg, range, "pending");
  if (!chunk)
    return std::nullopt;
  return chunk->pending;
}

std::optional<int64_t> RankState::padded(const ChunkArg *arg,
                                         SourceRange range) {
  if (!arg && program.pipes().size() == 1)
    return instance.padded.front();
  if (arg && arg->isPipe)
    return instance
        .padded[instance.parts[arg->value].stages.front().pipe.value];
  Chunk *chunk = resolve(arg, range, "padded");
  if (!chunk)
    return std::nullopt;
  return chunk->padded;
}
