// Linear programs in exact arithmetic.
#pragma once

#include "ppcc/EveryP/Form.h"

namespace ppcc::every {

/// A quotient in its lowest terms. Throws std::overflow_error.
struct Fraction {
  __int128 numerator = 0, denominator = 1;

  Fraction(__int128 numerator = 0, __int128 denominator = 1);
  int sign() const { return numerator > 0 ? 1 : numerator < 0 ? -1 : 0; }
  friend Fraction operator+(const Fraction &a, const Fraction &b);
  friend Fraction operator*(const Fraction &a, const Fraction &b);
  friend Fraction operator-(const Fraction &a) {
    Fraction negative = a;
    negative.numerator = -a.numerator;
    return negative;
  }
  friend Fraction operator-(const Fraction &a, const Fraction &b) {
    return a + -b;
  }
  friend Fraction operator/(const Fraction &a, const Fraction &b) {
    return a * Fraction(b.denominator, b.numerator);
  }
  friend bool operator<(const Fraction &a, const Fraction &b) {
    return (a - b).sign() < 0;
  }
};
Fraction operator+(const Fraction &a, const Fraction &b);
Fraction operator*(const Fraction &a, const Fraction &b);
using Vector = std::vector<Fraction>;

/// Fractions as whole numbers with a common denominator, which is given back.
int64_t wholeNumbers(ArrayRef<Fraction> values, std::vector<int64_t> &whole);

/// Thrown when all searches together take too long.
struct TooLong {};

/// Variables without bounds, and rows: sums of them that have lower bounds.
/// Bland's rule: it ends.
class Simplex {
public:
  explicit Simplex(unsigned variables);

  /// Asks for coefficients * variables >= least.
  void require(ArrayRef<Fraction> coefficients, Fraction least);
  /// Whether all rows can be had at once; else `multipliers`, by row, show that
  /// they contradict each other.
  bool isFeasible();
  /// Of what is feasible. True with the least value, and with `multipliers`
  /// that show it, else false with a `ray` along which it falls for ever.
  bool minimize(ArrayRef<Fraction> objective);

  const Fraction &operator[](unsigned variable) const {
    return values[variable];
  }
  Fraction least;
  Vector multipliers, ray;

  /// What was changed in tables, which is the same on every machine: most is
  /// about ten seconds.
  static inline thread_local uint64_t work = 0;
  static constexpr uint64_t mostWork = 400'000'000;

private:
  /// A sum of variables as one of those that are at the head of columns.
  Vector reduced(ArrayRef<Fraction> coefficients) const;
  void move(unsigned column, const Fraction &by);
  void pivot(unsigned row, unsigned column);
  void showBy(ArrayRef<Fraction> costs);

  const unsigned variables;
  std::vector<Vector> table;            ///< By row that is no column, its sum.
  std::vector<unsigned> basic, columns; ///< Their variables; rows are behind.
  std::vector<int> rowOf, columnOf;     ///< By variable; -1 for none.
  Vector values, lower;                 ///< By variable; lower by row.
};

/// Multipliers for a goal where all premises are natural, or nothing.
std::optional<Multipliers> multipliersFor(const Forms &premises,
                                          const Form &goal);

} // namespace ppcc::every
