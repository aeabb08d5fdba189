// Compares what a pipelined run reports with one without a pipeline.
#pragma once

#include "Messages.h"

#include "ppcc/Runtime/Program.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ppcc {

/// The microbatches of all pipes.
uint64_t countMicrobatches(const rt::Program &program);

/// The first number after those of all microbatches.
uint32_t microbatchesEnd(const rt::Program &program);

/// Puts the losses of microbatches together, from whoever tells them. The loss
/// of a step is their mean, summed by microbatch, so that it is the same to the
/// bit whoever reported what.
class LossCurve {
public:
  explicit LossCurve(uint64_t numMicrobatches)
      : numMicrobatches(numMicrobatches) {}
  void add(const StepLosses &losses);
  /// The loss of the next step, when all of it is there.
  std::optional<double> next();
  /// Steps that next() has given.
  uint64_t numTaken() const { return taken; }
  /// The number of the last of them, from 1; training may begin later.
  uint64_t lastStep() const { return first.value_or(0) + taken; }

private:
  uint64_t numMicrobatches, taken = 0;
  std::optional<uint64_t> first;
  std::map<uint64_t, std::map<uint32_t, double>> steps;
};

/// All that the workers of a run have reported.
struct RunResult {
  std::vector<StepLosses> losses;
  std::vector<Gradient> gradients;
  std::map<uint32_t, Peak> peaks; ///< By rank.

  void add(const WorkerMessage &message);
};

struct RunComparison {
  double gradients = 0, losses = 0; ///< The largest differences.
  std::vector<std::string> wrong;   ///< What is not as it must be.
};

/// Gradients of the first step, of every place that has a weight; losses of all
/// steps; activations against what the lists of the program hold.
RunComparison compare(const rt::Program &program, const RunResult &pipelined,
                      const RunResult &reference, uint64_t steps,
                      uint32_t replicas = 1);

} // namespace ppcc
