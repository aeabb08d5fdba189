// On which stages declared actions can be run.
#pragma once

#include "ppcc/IR/Topology.h"

namespace ppcc {

/// Whether a collective names the stage, or no stages at all.
bool isMember(const KindInfo &info, const Pipe &pipe, StageId stage);

/// Whether the stage is a member, and has what the action follows: no kind that
/// is left out, and no message that it will not send or receive.
bool isApplicableAt(const KindTable &kinds, const KindInfo &info,
                    const Pipe &pipe, StageId stage,
                    const BitVector &leftOut = {});

} // namespace ppcc
