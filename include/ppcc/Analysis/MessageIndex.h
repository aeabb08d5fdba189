// Finds the two ends of a message in constant time.
#pragma once

#include "ppcc/Analysis/EdgeIndex.h"

namespace ppcc {

/// For each message the first send and the first receive of the program.
/// O(actions + messages) to make, 8 bytes a message, and 4 more while it is
/// made. It does not follow changes of the program.
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
  /// The first row at the other end of the message of a send or receive.
  std::optional<ActionId> partner(const Action &action) const {
    auto message = of(action);
    if (!message)
      return std::nullopt;
    return sends(action) ? recv(*message) : send(*message);
  }

private:
  static constexpr uint32_t none = 0xFFFFFFFF;

  std::optional<ActionId> end(size_t side, Message message) const {
    uint32_t row = ends[side][message.number];
    return row == none ? std::nullopt : std::optional(ActionId(row));
  }

  std::vector<uint32_t> ends[2]; ///< By message: the send, the receive.
  bool whole = true, inOrder = true;
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
