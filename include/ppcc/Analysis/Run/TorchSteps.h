// What PyTorch does with the parameters of stages between their actions.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// A release of PyTorch.
struct TorchVersion {
  unsigned major = 2, minor = 15;
  auto operator<=>(const TorchVersion &) const = default;
};

/// The version written as `2.9`; a patch number and what follows it are
/// ignored. Nothing for other text.
std::optional<TorchVersion> parseTorchVersion(StringRef text);

/// The PyTorch that a program is for.
struct TorchTarget {
  TorchVersion version;
  bool fsdp = false; ///< Its stages are sharded by FSDP.

  /// Groups of a forward and a backward.
  bool overlaps() const { return version >= TorchVersion{2, 9}; }
  /// Gradients are divided and summed where the program says so.
  bool reduces() const { return version >= TorchVersion{2, 10}; }
  /// Sends and reductions end where the program says so.
  bool waits() const { return version >= TorchVersion{2, 15}; }
};

/// Something that a rank does with the parameters of one of its stages.
struct TorchStep {
  enum Kind : uint8_t {
    Unshard,        ///< Gather the parameters from all shards.
    Reshard,        ///< Keep only its own shard.
    ReduceGrad,     ///< Divide the gradients, and sum those of all shards.
    WaitReduceGrad, ///< Wait for their sum.
  };
  Kind kind;
  StageId stage;
  ActionId before; ///< The row before which it stands, or the rank's end.
};

/// The cell for a step, without its stage: `UNSHARD`.
StringRef torchStepName(TorchStep::Kind kind);

/// The steps of a rank, in order, each before a compute action or group or the
/// end, as PyTorch's lowering places them. It reduces the gradients of a stage
/// after the last action that makes any. With FSDP it keeps the next three
/// stages that the rank works on gathered, more only when a group begins with
/// less: a stage outside of this window is given up before a new one comes.
/// (Where a group moves the window past two stages at once, releases before
/// 2.12 give them up in an order of their own.) O(actions * chunks) at most.
std::vector<TorchStep> torchSteps(const Program &program, RankId rank,
                                  const TorchTarget &target);

} // namespace ppcc
