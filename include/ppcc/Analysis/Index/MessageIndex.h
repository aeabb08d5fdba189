// Finds the two ends of a message in constant time, and which ranks talk.
#pragma once

#include "ppcc/Analysis/Index/EdgeIndex.h"

namespace ppcc {

/// For each message the first send and the first receive of the program.
/// O(actions + messages) to make, 4 bytes an action and 8 a message, and 4 more
/// while it is made. It does not follow changes of the program.
class MessageIndex : public EdgeIndex {
public:
  MessageIndex(const Program &program, const ProgramIndex &index);

  /// Whether each send and receive of the program belongs to a message, and
  /// each message has one of both.
  bool isWhole() const { return fits() && whole; }
  /// Whether, besides, the two ranks of each lane have its messages in one
  /// order.
  bool isInOrder() const { return isWhole() && inOrder; }

  std::optional<ActionId> send(Message message) const {
    return end(0, message);
  }
  std::optional<ActionId> recv(Message message) const {
    return end(1, message);
  }
  /// The other end of a message; nothing when that is missing, or `row` is not
  /// the first at its own.
  std::optional<ActionId> partner(ActionId row) const {
    uint32_t other = partners[row.value];
    return other == none ? std::nullopt : std::optional(ActionId(other));
  }

private:
  static constexpr uint32_t none = 0xFFFFFFFF;

  std::optional<ActionId> end(size_t side, Message message) const {
    uint32_t row = ends[side][message.number];
    return row == none ? std::nullopt : std::optional(ActionId(row));
  }

  std::vector<uint32_t> ends[2];  ///< By message: the send, the receive.
  std::vector<uint32_t> partners; ///< By row.
  bool whole = true, inOrder = true;
};

/// By lane, its receives in program order. O(actions).
std::vector<std::vector<ActionId>>
receivesByChannel(const Program &program, const MessageIndex &messages);

/// Each two ranks between which the program sends or receives, with the first
/// send or receive of theirs. Rows whose other end is on their own rank are
/// passed over. O(actions).
std::map<RankPair, ActionId> communicatingPairs(const Program &program);

} // namespace ppcc
