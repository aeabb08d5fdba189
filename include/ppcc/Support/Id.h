// Distinct integer types for the things that a program counts.
#pragma once

#include <compare>
#include <cstdint>

namespace ppcc {

/// A number that names one thing of a kind; ids of different kinds do not mix.
template <class Tag> struct Id {
  uint32_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t value) : value(value) {}
  constexpr auto operator<=>(const Id &) const = default;
};

using RankId = Id<struct RankTag>; ///< A device of the pipeline group, from 0.
using StageId = Id<struct StageTag>; ///< A stage of one pipe, from 0.
using PipeId =
    Id<struct PipeTag>; ///< A pipe of the schedule, in order of declaration.
using MicrobatchId = Id<struct MicrobatchTag>; ///< A microbatch; numbers are
                                               ///< shared by all pipes.
using ActionId =
    Id<struct ActionTag>; ///< A row of a Program, ranks one after another.
using KindId =
    Id<struct KindTag>; ///< A row of a Program's table of action kinds.
using PhaseId =
    Id<struct PhaseTag>; ///< A phase name of a Program; 0 is "no phase".
using SiteId = Id<struct SiteTag>; ///< A place in the source; 0 is "unknown".

} // namespace ppcc
