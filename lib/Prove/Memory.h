// What rows take and give back, and send, from the costs of a program.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Proof/Memory.h"

namespace ppcc {

/// By the costs of `sample`, one of the programs of the template; nothing
/// where it is not the same for all microbatches of a stage, and they are not
/// those of one program.
std::optional<proof::Holdings> holdingsOf(const proof::Template &family,
                                          const Program &sample);

/// What ranks may hold beside what they hold at rest; memory is limited.
std::vector<Amount> roomsOf(const Program &program);

/// What a message from a stage to another holds, where somebody says it, and it
/// is the same for all microbatches.
std::optional<Amount> bytesOf(const Program &program, PipeId pipe, StageId from,
                              StageId to);

/// Where ranks hold more than they may.
struct Excess {
  int64_t change = 0; ///< The n from which on it is otherwise; 0 for none.
  /// A rank that holds too much for all n, and how much: the most.
  std::optional<std::pair<uint32_t, proof::Affine>> over;
};
Excess excessOf(const proof::Template &program, const proof::Holdings &holdings,
                ArrayRef<Amount> rooms);

} // namespace ppcc
