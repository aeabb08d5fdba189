// What training goes on from: on as many ranks as it was, or on others.
#pragma once

#include "ppcc/Torch/Stage.h"

namespace ppcc::rt {

/// Writes the weights that count on this rank, the buffers of its stages, what
/// the optimizer keeps (OptimizerHooks) and the scale of losses to a file of
/// its own, a dictionary from names to tensors as torch.load of Python reads
/// it. All ranks save to one folder, which is for this alone. Throws Error.
void saveCheckpoint(const std::string &folder, const TorchStage &stage);

/// Takes what the stages of the rank need of it by name, whatever the program,
/// the ranks and the placement that it was saved with; the stage must have its
/// update. Throws Error when a weight is missing, or differs.
void loadCheckpoint(const std::string &folder, TorchStage &stage);

} // namespace ppcc::rt
