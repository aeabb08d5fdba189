// Affine forms of the parameters of a schedule, of ranks and of iterations.
#pragma once

#include "ppcc/Support/LLVM.h"
#include <stdexcept>

namespace ppcc::every {

/// What a form speaks of: numbers that P and M are made of, the rank and the
/// iteration of a loop, and those of another action.
enum Dim { One, P, M, Rank, Iteration, OtherRank, OtherIteration, numDims };

/// A sum of multiples of these, with whole coefficients. Throws
/// std::overflow_error for what does not fit.
struct Form {
  std::array<int64_t, numDims> at{};

  Form() = default;
  Form(int64_t constant) { at[One] = constant; }
  static Form of(Dim dim, int64_t factor = 1) {
    Form form;
    form.at[dim] = factor;
    return form;
  }
  bool isConstant() const {
    for (unsigned dim = P; dim != numDims; ++dim)
      if (at[dim] != 0)
        return false;
    return true;
  }
  bool operator==(const Form &) const = default;
  auto operator<=>(const Form &) const = default;

  Form &add(const Form &other, int64_t factor) {
    for (unsigned dim = 0; dim != numDims; ++dim)
      if (int64_t product;
          __builtin_mul_overflow(other.at[dim], factor, &product) ||
          __builtin_add_overflow(at[dim], product, &at[dim]))
        throw std::overflow_error("form");
    return *this;
  }
  friend Form operator+(Form a, const Form &b) { return a.add(b, 1); }
  friend Form operator-(Form a, const Form &b) { return a.add(b, -1); }
  friend Form operator*(int64_t factor, const Form &a) {
    return Form().add(a, factor);
  }
  /// With `value` in place of `dim`.
  Form with(Dim dim, const Form &value) const {
    Form form = *this;
    int64_t factor = form.at[dim];
    form.at[dim] = 0;
    return form.add(value, factor);
  }
  /// With these in place of the rank and the iteration.
  Form on(const Form &rank, const Form &iteration) const {
    Form form = *this;
    form.at[Rank] = form.at[Iteration] = 0;
    return form.add(rank, at[Rank]).add(iteration, at[Iteration]);
  }
  /// A smaller form that is non-negative for the same whole numbers.
  Form tightened() const {
    int64_t divisor = 0;
    for (unsigned dim = P; dim != numDims; ++dim)
      divisor = std::gcd(divisor, at[dim]);
    if (divisor < 2)
      return *this;
    Form form;
    for (unsigned dim = P; dim != numDims; ++dim)
      form.at[dim] = at[dim] / divisor;
    int64_t rest = at[One] % divisor;
    form.at[One] = (at[One] - (rest < 0 ? rest + divisor : rest)) / divisor;
    return form;
  }
};

/// Forms that are non-negative: a polyhedron.
using Forms = std::vector<Form>;

/// Why a form is non-negative where others are: scale times it is the sum of
/// these and of `rest`. With a scale of 0 the others contradict each other.
struct Multipliers {
  int64_t scale = 0, rest = 0;
  std::vector<int64_t> ofPremises;
};

/// Whether the multipliers show `goal` >= 0 where all premises are
/// non-negative.
inline bool checkMultipliers(const Forms &premises, const Form &goal,
                             const Multipliers &multipliers) {
  const auto &[scale, rest, factors] = multipliers;
  if (factors.size() != premises.size() || scale < 0 || rest < 0 ||
      (scale == 0 && rest == 0))
    return false;
  Form sum = rest;
  for (size_t i = 0; i != factors.size(); ++i) {
    if (factors[i] < 0)
      return false;
    sum.add(premises[i], factors[i]);
  }
  return sum == scale * goal;
}

} // namespace ppcc::every
