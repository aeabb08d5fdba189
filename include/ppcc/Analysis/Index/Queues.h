// The queues of a program's ranks on a transport, and what else stands before a
// row.
#pragma once

#include "ppcc/Analysis/Index/MessageIndex.h"
#include "ppcc/IR/Transport.h"

namespace ppcc {

inline constexpr uint32_t noRow = 0xFFFFFFFF;

/// Whether an action has a queue beside those of compute actions and messages:
/// its lane is neither `compute` nor, where messages have one queue, `comm`.
inline bool hasOwnQueue(const KindInfo &info, QueueLayout layout) {
  bool oneOfMessages =
      layout == QueueLayout::One || layout == QueueLayout::Stream;
  return info.isAsync() && !(info.lane == lane::Comm && oneOfMessages);
}

/// Numbers the queues: that of a rank's compute actions, and of all its actions
/// where there is one, has the number of the rank; then come the streams, and
/// then the other lanes of the ranks.
class Queues {
public:
  /// `messages` is asked for messages only, and where they have several queues.
  Queues(const Program &program, const MessageIndex *messages,
         QueueLayout layout);

  size_t size() const { return count; }
  /// The queue that runs an action of `rank`. A message that no edge asks for
  /// is with the compute actions.
  uint32_t of(const Action &action, RankId rank) const;

private:
  void numberStreams();

  const Program &program;
  const MessageIndex *messages;
  QueueLayout layout;
  size_t count, firstLane;
  std::vector<uint32_t> streamOfSends, streamOfReceives; ///< By lane.
};

/// By row: the last action of the rank's own queue before the group of one that
/// runs beside it, which is issued after it; noRow for other rows. The own
/// queue is that of the compute actions, or, with one queue, of messages too.
/// O(actions).
std::vector<uint32_t> issuePredecessors(const Program &program,
                                        QueueLayout layout);

/// By row: the receive that makes room for a send where `capacity` messages are
/// stored; noRow for other rows. O(actions).
std::vector<uint32_t> bufferFreeingReceives(const Program &program,
                                            const MessageIndex &messages,
                                            uint32_t capacity);

} // namespace ppcc
