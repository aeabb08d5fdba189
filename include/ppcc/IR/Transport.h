// What a program of sends and receives runs on, as far as it decides whether
// ranks can block each other.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// The queues of a rank. Each runs its actions in program order.
enum class QueueLayout : uint8_t {
  One,           ///< Compute and communication in one.
  Stream,        ///< Compute; all communication.
  StreamPerPeer, ///< Compute; the communication with each peer.
  StreamPerEdge, ///< Compute; the sends to each peer; the receives from each.
};

/// When a send ends.
enum class SendWait : uint8_t {
  Nothing,  ///< As soon as it is posted.
  Capacity, ///< Once fewer than `capacity` messages are under way from its rank
            ///< to the peer.
  Receive,  ///< Once its receive has started too.
};

/// A transport.
struct Transport {
  std::string name; ///< As users write it: `stream`, `buffered:4`.
  QueueLayout layout = QueueLayout::Stream;
  SendWait sendWait = SendWait::Receive;
  uint32_t capacity = 0;   ///< Of SendWait::Capacity, at least 1.
  StringRef runtimes = {}; ///< What runs so, for people.

  /// Whether ends of messages meet on streams, whose connections have to stand.
  bool hasRendezvous() const {
    return hasStreams() && sendWait == SendWait::Receive;
  }

  /// Whether communication runs beside the compute actions: it is issued in
  /// program order, so it starts after the compute actions before it.
  bool hasStreams() const { return layout != QueueLayout::One; }
};

/// A row of Transports.def.
struct TransportInfo {
  StringRef name; ///< `buffered:k` for one that takes a capacity.
  QueueLayout layout;
  SendWait sendWait;
  StringRef summary, runtimes;
};

/// The names that stand without a capacity, to suggest.
SmallVector<StringRef> transportNames();

/// What a runtime that is named in place of a transport may run on: `` `stream`
/// (NCCL with one communicator), ...`` of `nccl`; empty for none.
std::string transportsOf(StringRef runtime);

/// The names with a bar between each two: `buffered|buffered:k|rendezvous`.
StringRef transportNameList();

/// The transport called `name`; the `k` of a capacity is a number of at least
/// 1, in its shortest form.
std::optional<Transport> findTransport(StringRef name);

} // namespace ppcc
