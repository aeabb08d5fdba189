// Finds the two ends of a message in constant time.
#pragma once

#include "ppcc/Analysis/ProgramIndex.h"

namespace ppcc {

/// A message that an edge between ranks needs: one slot of one microbatch from
/// a stage to a stage on another rank.
struct Message {
  uint32_t number = 0; ///< Counts the messages of the program.
  uint32_t lane = 0;   ///< The pair of ranks that it passes between.
};

/// The ranks that messages go from and to.
struct Lane {
  RankId from, to;
  auto operator<=>(const Lane &) const = default;
};

/// For each message the first send and the first receive of the program, and
/// the directed pairs of ranks (lanes), numbered in order. O(actions +
/// messages) to make, 8 bytes a message, and 4 more while it is made. It does
/// not follow changes of the program.
class MessageIndex {
public:
  using Needs = ProgramIndex;
  MessageIndex(const Program &program, const ProgramIndex &index);

  /// False when the program is far too short for its messages; nothing is found
  /// then.
  bool fits() const { return hasEnds; }
  size_t size() const { return ends[0].size(); }
  /// Whether each send and receive of the program belongs to a message, and
  /// each message has one of both.
  bool isWhole() const { return hasEnds && whole; }
  /// Whether, besides, the two ranks of each lane have its messages in one
  /// order.
  bool isInOrder() const { return isWhole() && inOrder; }
  llvm::ArrayRef<Lane> lanes() const { return laneRows; }

  /// The message that brings `slotBit` of stage `from` to stage `to`; nothing
  /// when no edge between ranks asks for it.
  std::optional<Message> find(PipeId pipe, StageId from, StageId to,
                              uint32_t microbatch, uint8_t slotBit) const;
  /// The message that a send or receive speaks of.
  std::optional<Message> of(const Action &action) const;

  std::optional<ActionId> send(Message message) const {
    return end(0, message);
  }
  std::optional<ActionId> recv(Message message) const {
    return end(1, message);
  }
  /// The first row at the other end of the message of a send or receive.
  std::optional<ActionId> partner(const Action &action) const {
    auto message = of(action);
    if (!message)
      return std::nullopt;
    return sends(action) ? recv(*message) : send(*message);
  }

private:
  struct Edge {
    uint32_t firstMessage = none; ///< Of the pipe's first microbatch; the
                                  ///< others follow. `none` within a rank.
    uint32_t lane = 0;
  };
  static constexpr uint32_t none = 0xFFFFFFFF;
  /// The slots that move, as rows of a table.
  static constexpr uint8_t movingSlots[] = {slot::Output, slot::InputGrad};

  bool sends(const Action &action) const {
    return program.kinds[action.kind].kindClass == KindClass::Send;
  }
  std::optional<ActionId> end(size_t side, Message message) const {
    uint32_t row = ends[side][message.number];
    return row == none ? std::nullopt : std::optional(ActionId(row));
  }
  /// The entry of `edgeStarts` for a stage whose `slotBit` moves.
  size_t edgeRow(PipeId pipe, StageId stage, uint8_t slotBit) const {
    return firstRow[pipe.value] + stage.value * std::size(movingSlots) +
           (slotBit == slot::InputGrad);
  }
  void addEdges();
  bool numberMessages();
  void addEnds();

  const Program &program;
  const ProgramIndex &index;
  std::vector<size_t> firstRow;     ///< By pipe.
  std::vector<uint32_t> edgeStarts; ///< Into `edges`; by edgeRow.
  std::vector<Edge> edges;
  std::vector<Lane> laneRows;
  std::vector<uint32_t> ends[2]; ///< By message: the send, the receive.
  bool hasEnds = false, whole = true, inOrder = true;
};

/// The receives of each lane, in program order. O(actions), 4 bytes a receive.
class LaneReceives {
public:
  LaneReceives(const Program &program, const MessageIndex &messages);

  llvm::ArrayRef<ActionId> of(uint32_t lane) const {
    return llvm::ArrayRef(rows).slice(starts[lane],
                                      starts[lane + 1] - starts[lane]);
  }

private:
  std::vector<uint32_t> starts;
  std::vector<ActionId> rows;
};

} // namespace ppcc
