#include "ppcc/Analysis/Index/EdgeIndex.h"

using namespace ppcc;

EdgeIndex::EdgeIndex(const Program &program, const ProgramIndex &index)
    : program(program), index(index), stages(program.pipes()) {
  if (!index.fits())
    return;
  addEdges();
  addChannels();
  isNumbered = numberMessages();
}

/// Enters the edges in the order of pipe, stage, slot and reader.
void EdgeIndex::addEdges() {
  for (PipeId pipe : program.pipeIds())
    for (StageId stage : program.pipe(pipe).stages())
      for (uint8_t slotBit : movingSlots) {
        edgeStarts.push_back(edgeRows.size());
        if (slotBit == slot::InputGrad && !program.hasBackward())
          continue;
        for (StageId reader : index.readersOf(pipe, stage, slotBit))
          edgeRows.push_back({pipe, stage, reader, slotBit});
      }
  edgeStarts.push_back(edgeRows.size());
}

void EdgeIndex::addChannels() {
  auto channelOf = [&](const Edge &edge) {
    return Channel{program.rankOfStage(edge.pipe, edge.from),
                   program.rankOfStage(edge.pipe, edge.to)};
  };
  for (const Edge &edge : edgeRows)
    if (Channel channel = channelOf(edge); channel.from != channel.to)
      channelRows.push_back(channel);
  llvm::sort(channelRows);
  channelRows.erase(std::unique(channelRows.begin(), channelRows.end()),
                    channelRows.end());
  for (Edge &edge : edgeRows)
    if (Channel channel = channelOf(edge); channel.from != channel.to)
      edge.channel =
          llvm::lower_bound(channelRows, channel) - channelRows.begin();
}

/// False when there are far more messages than rows.
bool EdgeIndex::numberMessages() {
  constexpr uint64_t slack = 1u << 20;
  for (Edge &edge : edgeRows) {
    if (edge.channel == Edge::none)
      continue;
    edge.firstMessage = uint32_t(messages);
    messages += program.pipe(edge.pipe).numMicrobatches;
    if (messages > program.size() + slack)
      return false;
  }
  return true;
}
