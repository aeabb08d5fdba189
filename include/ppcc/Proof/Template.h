// A program for all microbatches: rows whose microbatches, and loops whose
// iterations, grow with n.
#pragma once

#include "ppcc/IR/Topology.h"

#include <stdexcept>

namespace ppcc::proof {

/// c + n N + j J, where N and J are variables. Throws std::overflow_error for
/// what does not fit.
struct Affine {
  int64_t c = 0, n = 0, j = 0;

  constexpr Affine(int64_t c = 0, int64_t n = 0, int64_t j = 0)
      : c(c), n(n), j(j) {}
  bool isConstant() const { return n == 0 && j == 0; }
  __int128 at(__int128 atN, __int128 atJ = 0) const {
    return c + n * atN + j * atJ;
  }
  friend Affine operator+(Affine a, Affine b) {
    return {sum(a.c, b.c), sum(a.n, b.n), sum(a.j, b.j)};
  }
  friend Affine operator-(Affine a, Affine b) { return a + -1 * b; }
  friend Affine operator*(int64_t k, Affine a) {
    return {product(k, a.c), product(k, a.n), product(k, a.j)};
  }
  bool operator==(const Affine &) const = default;

private:
  static int64_t sum(int64_t a, int64_t b) {
    if (int64_t result; !__builtin_add_overflow(a, b, &result))
      return result;
    throw std::overflow_error("sum");
  }
  static int64_t product(int64_t a, int64_t b) {
    if (int64_t result; !__builtin_mul_overflow(a, b, &result))
      return result;
    throw std::overflow_error("product");
  }
};

inline constexpr uint32_t noLoop = 0xFFFFFFFF;
/// As in an Action: the peer of what computes, the microbatch of what has none.
inline constexpr uint32_t noPeer = 0xFFFF, noMicrobatch = 0xFFFFFFFF;
inline constexpr int64_t unbounded = INT64_MAX;

/// An action, once or in each iteration of a window.
struct Row {
  KindId kind;
  PipeId pipe;
  StageId stage;
  StageId peer{noPeer};
  bool joined = false; ///< To the row before it.
  uint32_t loop = noLoop;
  Affine microbatch;      ///< j is the iteration of the window.
  uint32_t sourceLoc = 0; ///< Whatever its maker knows it by.
  PhaseId phase;
  SiteId site;
};

/// One past the row, or the window, that begins there.
inline uint32_t blockEnd(ArrayRef<Row> rows, uint32_t begin) {
  uint32_t end = begin + 1;
  while (rows[begin].loop != noLoop && end != rows.size() &&
         rows[end].loop == rows[begin].loop)
    ++end;
  return end;
}

/// The microbatches of a pipe.
struct MicrobatchRange {
  Affine first, count;
  bool operator==(const MicrobatchRange &) const = default;
};

/// For each n in 0..last a program. The rows of a window stand together, and
/// run n + 1 times, in iterations 0 to n.
struct Template {
  const Topology *head = nullptr; ///< Its microbatches count for nothing.
  std::vector<MicrobatchRange> pipes;
  int64_t last = unbounded;
  std::vector<std::vector<Row>> ranks;
};

/// Of each row that has a key, how many with the same stand before it on its
/// rank, as a function of its iteration.
template <class KeyOf>
std::vector<Affine> ordinalsOf(ArrayRef<Row> rows, KeyOf keyOf) {
  std::vector<Affine> places(rows.size());
  using Key = typename decltype(keyOf(0u))::value_type;
  std::map<Key, Affine> counts;
  for (uint32_t begin = 0, end; begin != rows.size(); begin = end) {
    end = blockEnd(rows, begin);
    bool hasIterations = rows[begin].loop != noLoop;
    std::map<Key, int64_t> ofTurn;
    for (uint32_t row = begin; row != end; ++row)
      if (auto key = keyOf(row))
        places[row] = counts[*key] + ofTurn[*key]++;
    for (uint32_t row = begin; hasIterations && row != end; ++row)
      if (auto key = keyOf(row))
        places[row].j = ofTurn[*key];
    for (auto [key, count] : ofTurn)
      counts[key] = counts[key] + count * Affine{1, hasIterations, 0};
  }
  return places;
}

/// When the rows of a template start and end, or numbers that grow with it: by
/// rank and row, the same for all rows of a group.
struct Times {
  struct OfRow {
    Affine start, end;
  };
  std::vector<std::vector<OfRow>> ranks;
};

} // namespace ppcc::proof
