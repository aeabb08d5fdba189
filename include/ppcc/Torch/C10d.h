// A process a rank, with a process group of c10d.
#pragma once

#include "ppcc/Runtime/Engine.h"
#include "ppcc/Torch/Stage.h"

#include <c10/util/intrusive_ptr.h>

namespace c10d {
class ProcessGroup;
class Store;
} // namespace c10d

namespace ppcc::rt {

/// A rank's end of a process group. The tensors of an edge must have the same
/// types and shapes for every microbatch, unless setDynamicShapes() was called:
/// the first message of an edge tells them, and from then on receives are
/// posted where they stand. Tensors of one message are packed; those that are
/// received share memory.
///
/// A send lives until its receive has met it, which a thread waits for. After a
/// failure the connections close, so that the other ranks hear of it; then, and
/// after a wait that took too long, the group is of no use any more.
class C10d {
public:
  /// A new group of Gloo's on this machine. The ranks meet in `file`, which
  /// must be new and on a disk that all see; `timeout` is how long each waits
  /// for the others there. `host` is the address of this rank's machine.
  /// Ignores SIGPIPE from then on, unless the process handles it. Throws
  /// std::runtime_error.
  static C10d gloo(const std::string &file, uint32_t rank, uint32_t numRanks,
                   milliseconds timeout = std::chrono::minutes(1),
                   const std::string &host = "127.0.0.1");

  /// A group that is there already, for this alone, and the store in which its
  /// ranks met.
  C10d(c10::intrusive_ptr<c10d::ProcessGroup> group,
       c10::intrusive_ptr<c10d::Store> store);
  C10d(C10d &&) noexcept;
  /// A rank that gives it up before finish() or fail() counts as failed.
  ~C10d();

  uint32_t rank() const;
  uint32_t numRanks() const;

  /// Ahead of the first message, on all ranks: each message tells its types and
  /// shapes, which may be others for each microbatch. That takes two small
  /// messages more, and receives are posted when they are waited for.
  void setDynamicShapes();

  /// Where tensors that come are laid; without it, in the memory of the host,
  /// through which all go.
  void setDevice(at::Device device);

  void send(uint32_t to, Message<Tensors> &&message);
  void postReceive(uint32_t from, const Label &label, size_t);
  bool receive(uint32_t from, Message<Tensors> &into, milliseconds timeout);
  bool sendsMatched(uint32_t to, milliseconds timeout);
  void finish(milliseconds timeout);
  void fail(const std::string &text);

  /// Beside the messages of the program, in an order of their own: each tells
  /// its types and shapes. They may be sent while a program runs, and
  /// received; finish() waits for them, too.
  void sendSideChannel(uint32_t to, Message<Tensors> &&message);
  Message<Tensors> receiveSideChannel(uint32_t from, milliseconds timeout);

  /// What sends that have not ended, and receives that are posted, take.
  uint64_t bytesInFlight() const;

  /// What each rank says. Collective.
  std::vector<std::string> gather(const std::string &text,
                                  milliseconds timeout);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace ppcc::rt
