// How long messages were on their way, from the traces of a run.
#pragma once

#include "ppcc/IR/ActionKind.h"
#include "ppcc/Import/TraceFile.h"

#include "llvm/Support/Regex.h"

namespace ppcc {

/// Collects the sends and receives of traces that the engine or `--emit=trace`
/// wrote.
class MessageTimes {
public:
  /// Notes an event that is named like a send or receive; passes over others.
  void add(const TraceEvent &event);

  /// For each stage the times of the messages on the edges that lead up from
  /// it, both ways. A message takes from the start of its send to the end of
  /// its receive, if the receiver waited for it by then. Of a stage where none
  /// did, the shortest time until a receiver looked, which bounds the latency.
  /// O(events * log(events)).
  std::map<uint32_t, std::vector<Time>> byStage() const;

private:
  /// Slot, stage that sends, stage that receives, microbatch.
  using Message = std::tuple<uint8_t, uint32_t, uint32_t, uint64_t>;
  struct Receive {
    Time posted, waited, end; ///< waited: from then on.
  };
  struct Ends {
    std::vector<Time> sends; ///< One for each step, in their order.
    std::vector<Receive> receives;
  };

  KindTable kinds;
  llvm::Regex regex{"^([0-9]+)([A-Z]+_[A-Z]+)([0-9]+)([<>]([0-9]+))?$"};
  std::map<Message, Ends> messages;
};

} // namespace ppcc
