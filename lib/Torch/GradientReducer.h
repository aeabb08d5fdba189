// What the actions of a rank ask of the other places of its weights.
#pragma once

#include "ppcc/Torch/Stage.h"

namespace ppcc::rt {

/// Those of one rank. All functions may throw PeerFailed and TimedOut.
class GradientReducer {
public:
  virtual ~GradientReducer() = default;

  /// An action that sums the gradients of a stage has been reached: after the
  /// last one of the stage, they are handed over. Does not wait.
  virtual void begin(uint8_t pipe, uint16_t stage) = 0;
  /// Hands over what has not been, and gives the rank's weights their sums.
  virtual void finish() = 0;
  /// The sum of what all ranks of all replicas say, the same on each. All ask.
  virtual double allReduceSum(double value) = 0;
  /// Whether a weight counts on the rank, of all that have it.
  virtual bool isOwner(const std::string &name) const = 0;
  /// The rank has failed: whoever waits stops.
  virtual void fail(const std::string &text) = 0;
};

} // namespace ppcc::rt
