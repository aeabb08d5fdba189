// Distinct integer types for the things that a program counts.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace ppcc {

/// A number that names one thing of a kind; ids of different kinds do not mix.
template <class Tag> struct Id {
  uint32_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t value) : value(value) {}
  constexpr auto operator<=>(const Id &) const = default;
};

/// The ids from one up to, not including, another.
template <class IdType> struct IdRange {
  IdType from, to;

  class iterator {
  public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = IdType;
    using difference_type = std::ptrdiff_t;
    using pointer = const IdType *;
    using reference = IdType;

    constexpr iterator() = default;
    constexpr explicit iterator(IdType id) : id(id) {}
    constexpr IdType operator*() const { return id; }
    constexpr iterator &operator++() { return ++id.value, *this; }
    constexpr iterator &operator--() { return --id.value, *this; }
    constexpr iterator operator++(int) { return iterator(IdType(id.value++)); }
    constexpr iterator operator--(int) { return iterator(IdType(id.value--)); }
    constexpr bool operator==(const iterator &) const = default;

  private:
    IdType id;
  };

  constexpr iterator begin() const { return iterator(from); }
  constexpr iterator end() const { return iterator(to); }
  constexpr bool empty() const { return from == to; }
  constexpr size_t size() const { return to.value - from.value; }
  constexpr bool contains(IdType id) const { return from <= id && id < to; }
};

/// The first `count` ids.
template <class IdType> constexpr IdRange<IdType> firstIds(size_t count) {
  return {IdType(), IdType(static_cast<uint32_t>(count))};
}

using RankId = Id<struct RankTag>; ///< A device of the pipeline group, from 0.
using StageId = Id<struct StageTag>; ///< A stage of one pipe, from 0.
using PipeId =
    Id<struct PipeTag>; ///< A pipe of the schedule, in order of declaration.
using ActionId =
    Id<struct ActionTag>; ///< A row of a Program, ranks one after another.
using KindId =
    Id<struct KindTag>; ///< A row of a Program's table of action kinds.
using PhaseId =
    Id<struct PhaseTag>; ///< A phase name of a Program; 0 is "no phase".
using SiteId = Id<struct SiteTag>; ///< A place in the source; 0 is "unknown".

} // namespace ppcc
