#include "ppcc/Analysis/MessageIndex.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <numeric>

using namespace ppcc;

MessageIndex::MessageIndex(const Program &program, const ProgramIndex &index)
    : program(program), index(index) {
  if (!index.fits())
    return;
  addEdges();
  hasEnds = numberMessages();
  if (hasEnds)
    addEnds();
}

/// Enters the edges in the order of pipe, stage, slot and reader.
void MessageIndex::addEdges() {
  std::vector<Lane> laneOfEdge;
  for (uint32_t pipe = 0; pipe != program.pipes.size(); ++pipe) {
    const Pipe &info = program.pipes[pipe];
    firstRow.push_back(edgeStarts.size());
    for (uint32_t stage = 0; stage != info.numStages(); ++stage)
      for (uint8_t slotBit : movingSlots) {
        edgeStarts.push_back(edges.size());
        if (slotBit == slot::InputGrad && !program.hasBackward)
          continue;
        for (StageId reader :
             index.readersOf(PipeId(pipe), StageId(stage), slotBit)) {
          edges.push_back({});
          laneOfEdge.push_back(
              {info.rankOfStage[stage], info.rankOfStage[reader.value]});
        }
      }
  }
  edgeStarts.push_back(edges.size());

  laneRows = laneOfEdge;
  llvm::erase_if(laneRows, [](Lane lane) { return lane.from == lane.to; });
  llvm::sort(laneRows);
  laneRows.erase(std::unique(laneRows.begin(), laneRows.end()), laneRows.end());
  for (auto [edge, lane] : llvm::zip(edges, laneOfEdge))
    edge.lane = lane.from == lane.to
                    ? none
                    : llvm::lower_bound(laneRows, lane) - laneRows.begin();
}

/// False when there are far more messages than rows.
bool MessageIndex::numberMessages() {
  constexpr uint64_t slack = 1u << 20;
  uint64_t messages = 0;
  for (uint32_t pipe = 0; pipe != program.pipes.size(); ++pipe) {
    const Pipe &info = program.pipes[pipe];
    uint32_t from = edgeStarts[firstRow[pipe]];
    uint32_t to = edgeStarts[edgeRow(PipeId(pipe), StageId(info.numStages()),
                                     slot::Output)];
    for (Edge &edge : llvm::MutableArrayRef(edges).slice(from, to - from)) {
      if (edge.lane == none)
        continue;
      edge.firstMessage = static_cast<uint32_t>(messages);
      messages += info.numMicrobatches;
      if (messages > program.size() + slack)
        return false;
    }
  }
  for (auto &column : ends)
    column.assign(messages, none);
  return true;
}

void MessageIndex::addEnds() {
  std::vector<uint32_t> done[2]; // By lane: the sends and receives so far.
  for (auto &column : done)
    column.resize(laneRows.size());
  std::vector<uint32_t> positions(size()); // Of the end met first, on its lane.
  size_t rows = 0;
  for (uint32_t row = 0; row != program.size(); ++row) {
    if (program.kindOf(ActionId(row)).isCompute())
      continue;
    Action action = program[ActionId(row)];
    auto message = of(action);
    bool side = !sends(action);
    if (!message || ends[side][message->number] != none) {
      whole = false;
      continue;
    }
    ++rows;
    ends[side][message->number] = row;
    uint32_t position = done[side][message->lane]++;
    if (ends[!side][message->number] == none)
      positions[message->number] = position;
    else
      inOrder &= positions[message->number] == position;
  }
  whole &= rows == 2 * size();
}

std::optional<Message> MessageIndex::find(PipeId pipe, StageId from, StageId to,
                                          uint32_t microbatch,
                                          uint8_t slotBit) const {
  if (!hasEnds)
    return std::nullopt;
  size_t row = edgeRow(pipe, from, slotBit);
  uint32_t edge = edgeStarts[row], end = edgeStarts[row + 1];
  if (edge == end)
    return std::nullopt;
  auto readers = index.readersOf(pipe, from, slotBit);
  if (readers.size() > 1) {
    auto reader = llvm::lower_bound(readers, to);
    if (reader == readers.end() || *reader != to)
      return std::nullopt;
    edge += reader - readers.begin();
  } else if (readers.front() != to)
    return std::nullopt;
  if (edges[edge].firstMessage == none)
    return std::nullopt;
  return Message{edges[edge].firstMessage + microbatch -
                     program.pipes[pipe.value].firstMicrobatch,
                 edges[edge].lane};
}

std::optional<Message> MessageIndex::of(const Action &action) const {
  if (!action.hasPeer())
    return std::nullopt;
  bool out = sends(action);
  return find(action.pipe, out ? action.stage : action.peer,
              out ? action.peer : action.stage, action.microbatch,
              program.kinds[action.kind].mainSlot());
}

/// Calls `visit(row, lane)` for each receive of a message.
template <class Visit>
static void forEachReceive(const Program &program, const MessageIndex &messages,
                           Visit visit) {
  for (uint32_t row = 0; row != program.size(); ++row)
    if (program.kindOf(ActionId(row)).kindClass == KindClass::Recv)
      if (auto message = messages.of(program[ActionId(row)]))
        visit(ActionId(row), message->lane);
}

LaneReceives::LaneReceives(const Program &program, const MessageIndex &messages)
    : starts(messages.lanes().size() + 1) {
  forEachReceive(program, messages,
                 [&](ActionId, uint32_t lane) { ++starts[lane + 1]; });
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  rows.resize(starts.back());
  std::vector<uint32_t> next = starts;
  forEachReceive(program, messages, [&](ActionId row, uint32_t lane) {
    rows[next[lane]++] = row;
  });
}
