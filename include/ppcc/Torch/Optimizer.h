// Optimizers of LibTorch for the actions of a program.
#pragma once

#include "ppcc/Torch/Stage.h"

#include <torch/optim/optimizer.h>

namespace ppcc::rt {

/// Steps of the optimizer. Where a program checks its step, weights and state
/// are copied ahead of each: O(bytes of both).
OptimizerHooks makeUpdate(std::shared_ptr<torch::optim::Optimizer> optimizer);

} // namespace ppcc::rt
