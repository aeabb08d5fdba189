// How many layers each stage gets.
#pragma once

#include "ppcc/Analysis/Cost/Durations.h"

namespace ppcc::synthesis {

/// The number of layers of each stage.
using Partition = std::vector<uint32_t>;

/// As many layers for each stage, the first ones one more.
Partition evenPartition(uint32_t layers, uint32_t stages);

/// Looks for partitions of `layers` layers into `stages` stages, each of one at
/// least, by moving layers from stage to stage, beginning with an even one;
/// `valueOf` says what one takes, nothing where it cannot be had, and is asked
/// `most` times at most. The best; nothing when none can.
std::optional<Partition>
searchPartitions(uint32_t layers, uint32_t stages, unsigned maxTried,
                 function_ref<std::optional<Time>(const Partition &)> valueOf);

} // namespace ppcc::synthesis
