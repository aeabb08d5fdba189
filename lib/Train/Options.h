// What pprun trains, and how.
#pragma once

#include <cstdint>
#include <string>

namespace ppcc {

struct TrainOptions {
  uint64_t steps = 50, seed = 1;
  uint32_t timeout = 600; ///< Seconds that a rank waits for another.
  double learningRate = 3e-3;
  uint32_t layers = 0; ///< 0: as many as the longest pipe has stages.
  uint32_t width = 32, heads = 2;
  uint32_t length = 32, batch = 4; ///< Of a microbatch, in tokens and samples.
  uint32_t minLength =
      0;                 ///< Lengths vary from here to `length`; 0: they don't.
  uint32_t replicas = 1; ///< Of the pipeline, each with its own microbatches.
  bool isDouble = false, recompute = false;
  bool overlaps = false;      ///< Members of groups run at the same time.
  bool traces = false;        ///< The workers tell when they did what, at last.
  bool countsBytes = false;   ///< The workers tell what their tensors take.
  std::string device = "cpu"; ///< Where modules and data live; as at::Device.
  std::string text;           ///< What is learnt.
  std::string loadFolder, saveFolder; ///< Folders of checkpoints, or nothing.
  bool sendsGradients = false; ///< The workers tell those of the first step.
};

} // namespace ppcc
