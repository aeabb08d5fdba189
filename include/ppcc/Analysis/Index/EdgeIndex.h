// Numbers the messages that the edges between ranks need.
#pragma once

#include "ppcc/Analysis/Index/ProgramIndex.h"
#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// A message that an edge between ranks needs: one slot of one microbatch from
/// a stage to a stage on another rank.
struct Message {
  uint32_t number = 0;  ///< Counts the messages of the program.
  uint32_t edge = 0;    ///< Counts the edges between stages.
  uint32_t channel = 0; ///< The pair of ranks that it passes between.
};

/// The ranks that messages go from and to.
struct Channel {
  RankId from, to;
  auto operator<=>(const Channel &) const = default;
};

/// The way of one slot from a stage to a stage that reads it.
struct Edge {
  static constexpr uint32_t none = 0xFFFFFFFF;

  PipeId pipe;
  StageId from, to;
  uint8_t slotBit = 0;
  uint32_t firstMessage = none; ///< Of the pipe's first microbatch; the others
                                ///< follow. `none` within a rank.
  uint32_t channel = none;      ///< `none` within a rank.
};

/// The edges between stages, and numbers for the messages that they need when
/// they lead to another rank. O(edges) to make. It does not follow changes of
/// the program.
class EdgeIndex {
public:
  EdgeIndex(const Program &program, const ProgramIndex &index);

  /// False when the program is far too short for its messages; nothing is found
  /// then.
  bool fits() const { return isNumbered; }
  /// Messages that the edges need.
  size_t size() const { return messages; }
  /// In the order of pipe, `from`, slot and `to`.
  ArrayRef<Edge> edges() const { return edgeRows; }
  /// The directed pairs of ranks with edges between them, sorted.
  ArrayRef<Channel> channels() const { return channelRows; }

  /// The message that brings `slotBit` of stage `from` to stage `to`; nothing
  /// when no edge between ranks asks for it.
  std::optional<Message> find(PipeId pipe, StageId from, StageId to,
                              uint32_t microbatch, uint8_t slotBit) const;
  /// The message that a send or receive speaks of.
  std::optional<Message> of(const Action &action) const;

  /// Calls `visit(message)` for each message that a compute action reads.
  template <class Visit>
  void forEachInput(const Action &action, Visit visit) const {
    const KindInfo &info = program.kindOf(action);
    for (uint8_t slotBit : slotsIn(info.isCompute() ? info.defines : 0)) {
      for (StageId source : index.sourcesOf(action.pipe, action.stage, slotBit))
        if (auto message = find(action.pipe, source, action.stage,
                                action.microbatch, slotBit))
          visit(*message);
    }
  }

protected:
  bool sends(const Action &action) const {
    return program.kindOf(action).isSend();
  }

  const Program &program;
  const ProgramIndex &index;

private:
  /// The slots that move, as rows of a table.
  static constexpr uint8_t movingSlots[] = {slot::Output, slot::InputGrad};

  /// The entry of `edgeStarts` for a stage whose `slotBit` moves.
  size_t edgeRow(PipeId pipe, StageId stage, uint8_t slotBit) const {
    return stages(pipe, stage) * std::size(movingSlots) +
           (slotBit == slot::InputGrad);
  }
  void addEdges();
  void addChannels();
  bool numberMessages();

  StageNumbering stages;
  std::vector<uint32_t> edgeStarts; ///< Into `edgeRows`; by edgeRow.
  std::vector<Edge> edgeRows;
  std::vector<Channel> channelRows;
  uint64_t messages = 0;
  bool isNumbered = false;
};

// Here, since a caller that sees them keeps the message in registers.

inline std::optional<Message> EdgeIndex::find(PipeId pipe, StageId from,
                                              StageId to, uint32_t microbatch,
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
  if (edge.channel == Edge::none)
    return std::nullopt;
  return Message{edge.firstMessage + microbatch -
                     program.pipe(pipe).firstMicrobatch,
                 number, edge.channel};
}

inline std::optional<Message> EdgeIndex::of(const Action &action) const {
  if (!action.hasPeer())
    return std::nullopt;
  bool out = sends(action);
  return find(action.pipe, out ? action.stage : action.peer,
              out ? action.peer : action.stage, action.microbatch,
              program.kindOf(action).mainSlot());
}

} // namespace ppcc
