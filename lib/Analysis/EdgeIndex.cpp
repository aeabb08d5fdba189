#include "ppcc/Analysis/EdgeIndex.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace ppcc;

EdgeIndex::EdgeIndex(const Program &program, const ProgramIndex &index)
    : program(program), index(index) {
  if (!index.fits())
    return;
  addEdges();
  addLanes();
  isNumbered = numberMessages();
}

/// Enters the edges in the order of pipe, stage, slot and reader.
void EdgeIndex::addEdges() {
  for (PipeId pipe : program.pipeIds()) {
    firstRow.push_back(edgeStarts.size());
    for (uint32_t stage = 0; stage != program.pipe(pipe).numStages(); ++stage)
      for (uint8_t slotBit : movingSlots) {
        edgeStarts.push_back(edgeRows.size());
        if (slotBit == slot::InputGrad && !program.hasBackward())
          continue;
        for (StageId reader : index.readersOf(pipe, StageId(stage), slotBit))
          edgeRows.push_back({pipe, StageId(stage), reader, slotBit});
      }
  }
  edgeStarts.push_back(edgeRows.size());
}

void EdgeIndex::addLanes() {
  auto laneOf = [&](const Edge &edge) {
    return Lane{program.rankOfStage(edge.pipe, edge.from),
                program.rankOfStage(edge.pipe, edge.to)};
  };
  for (const Edge &edge : edgeRows)
    if (Lane lane = laneOf(edge); lane.from != lane.to)
      laneRows.push_back(lane);
  llvm::sort(laneRows);
  laneRows.erase(std::unique(laneRows.begin(), laneRows.end()), laneRows.end());
  for (Edge &edge : edgeRows)
    if (Lane lane = laneOf(edge); lane.from != lane.to)
      edge.lane = llvm::lower_bound(laneRows, lane) - laneRows.begin();
}

/// False when there are far more messages than rows.
bool EdgeIndex::numberMessages() {
  constexpr uint64_t slack = 1u << 20;
  for (Edge &edge : edgeRows) {
    if (edge.lane == Edge::none)
      continue;
    edge.firstMessage = static_cast<uint32_t>(messages);
    messages += program.pipe(edge.pipe).numMicrobatches;
    if (messages > program.size() + slack)
      return false;
  }
  return true;
}

std::optional<Message> EdgeIndex::find(PipeId pipe, StageId from, StageId to,
                                       uint32_t microbatch,
                                       uint8_t slotBit) const {
  if (!isNumbered)
    return std::nullopt;
  size_t row = edgeRow(pipe, from, slotBit);
  uint32_t number = edgeStarts[row], end = edgeStarts[row + 1];
  if (number == end)
    return std::nullopt;
  auto readers = index.readersOf(pipe, from, slotBit);
  if (readers.size() > 1) {
    auto reader = llvm::lower_bound(readers, to);
    if (reader == readers.end() || *reader != to)
      return std::nullopt;
    number += reader - readers.begin();
  } else if (readers.front() != to) {
    return std::nullopt;
  }
  const Edge &edge = edgeRows[number];
  if (edge.lane == Edge::none)
    return std::nullopt;
  return Message{edge.firstMessage + microbatch -
                     program.pipe(pipe).firstMicrobatch,
                 number, edge.lane};
}

std::optional<Message> EdgeIndex::of(const Action &action) const {
  if (!action.hasPeer())
    return std::nullopt;
  bool out = sends(action);
  return find(action.pipe, out ? action.stage : action.peer,
              out ? action.peer : action.stage, action.microbatch,
              program.kindOf(action).mainSlot());
}
