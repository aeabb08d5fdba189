// What actions take and hold, as far as proofs of time and memory ask.
#pragma once

#include "ppcc/Proof/Memory.h"

namespace ppcc::proof {

/// Times in 10^-9, memory in 10^-6 of the units that users think in.
inline constexpr int64_t timeUnit = 1'000'000'000, memoryUnit = 1'000'000;

struct Costs {
  /// One for all, or for each of what they differ between.
  using Values = std::vector<int64_t>;
  enum class Group : uint8_t { Sum, Max, Fixed };
  /// A kind, a pipe and a stage.
  using Member = std::array<uint32_t, 3>;

  std::map<uint32_t, Values> times; ///< By kind; of stages, pipe after pipe.
  /// What a group takes: so often the sum of its members, or the largest of
  /// them, or this time; but for those of which it is said.
  Group group = Group::Sum;
  int64_t factor = timeUnit;
  std::map<std::vector<Member>, int64_t> groups;
  /// What a message takes, by pipe, from, to; those that are not here take no
  /// time.
  std::map<std::array<uint32_t, 3>, int64_t> links;
  /// By kind: what an action takes, or gives back when it is negative. One that
  /// makes the gradients of the weights gives back all that its microbatch
  /// still holds of the stage where it is not here, or `remainder`.
  std::map<uint32_t, Values> memory;
  static constexpr int64_t remainder = INT64_MIN;
  Values staticMemory, limits; ///< By rank; without limits, nothing is asked.
  /// By what costs are multiplied, in 10^-9, by microbatch, pipe after pipe:
  /// the time of kinds, the memory of all.
  std::map<uint32_t, Values> timeScales;
  Values memoryScales;
};

/// By rank and row; that of a group stands with its first row.
using RowDurations = std::vector<std::vector<int64_t>>;

/// What the rows of a template take; nothing where that is not said, or differs
/// between the programs of the template.
std::optional<RowDurations> rowDurationsOf(const Template &program,
                                           const Costs &costs);
/// What a message between two stages takes.
int64_t timeOf(const Costs &costs, PipeId pipe, StageId from, StageId to);

/// What they take and give back; nothing where that follows no order of rows,
/// or differs between the programs.
std::optional<MemoryDeltas> memoryDeltasOf(const Template &program,
                                           const Costs &costs);
/// What a rank may hold beside what it holds at rest; it is limited.
int64_t memoryBudgetOf(const Costs &costs, uint32_t rank);

} // namespace ppcc::proof
