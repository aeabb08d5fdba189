// The queues of a program's ranks on a transport, and what else stands before a
// row.
#pragma once

#include "ppcc/Analysis/MessageIndex.h"
#include "ppcc/IR/Transport.h"

namespace ppcc {

inline constexpr uint32_t noRow = 0xFFFFFFFF;

/// Numbers the queues: that of a rank's compute actions, and of all its actions
/// where there is one, has the number of the rank; then come the streams.
class Queues {
public:
  Queues(const Program &program, const MessageIndex &messages,
         QueueLayout layout);

  size_t size() const { return count; }
  /// The queue that runs an action of `rank`. A message that no edge asks for
  /// is with the compute actions.
  uint32_t of(const Action &action, RankId rank) const;

private:
  void numberStreams();

  const Program &program;
  const MessageIndex &messages;
  QueueLayout layout;
  size_t count;
  std::vector<uint32_t> streamOfSends, streamOfReceives; ///< By lane.
};

/// By row: the last compute action before the group of a send or receive, which
/// is issued behind it; noRow for other rows. O(actions).
std::vector<uint32_t> issuedBehind(const Program &program);

/// By row: the receive that makes room for a send where `capacity` messages are
/// stored; noRow for other rows. O(actions).
std::vector<uint32_t> roomMakers(const Program &program,
                                 const MessageIndex &messages,
                                 uint32_t capacity);

} // namespace ppcc
