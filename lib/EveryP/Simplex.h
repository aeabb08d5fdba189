// Linear programs in exact arithmetic.
#pragma once

#include "ppcc/EveryP/Form.h"
#include "ppcc/Proof/Formula.h"

namespace ppcc::every {

using Vector = std::vector<Rational>;

/// Quotients as whole numbers with a common denominator, which is given back.
int64_t toCommonDenominator(ArrayRef<Rational> values,
                            std::vector<int64_t> &whole);

/// What a form multiplies P.. with.
Vector linear(const Form &form);

/// Thrown when all searches together take too long.
struct WorkLimitReached {};

/// Variables without bounds, and rows: sums of them that have lower bounds.
/// Bland's rule: it ends.
class Simplex {
public:
  explicit Simplex(unsigned variables);
  /// Of the numbers for which all of `premises` are non-negative.
  explicit Simplex(const Forms &premises);

  /// Asks for coefficients * variables >= least.
  void require(ArrayRef<Rational> coefficients, Rational lowerBound);
  /// Whether all rows can be had at once; else `multipliers`, by row, show that
  /// they contradict each other.
  bool isFeasible();
  /// Of what is feasible. True with the least value, and with `multipliers`
  /// that show it, else false with a `ray` along which it falls for ever.
  bool minimize(ArrayRef<Rational> objective);

  /// The values of the variables.
  ArrayRef<Rational> point() const {
    return ArrayRef(values).take_front(variables);
  }
  Rational minimum;
  Vector multipliers, ray;

  /// What was changed in tables, which is the same on every machine: most is
  /// about ten seconds.
  static inline thread_local uint64_t work = 0;
  static constexpr uint64_t maxWork = 400'000'000;

private:
  /// A sum of variables as one of those that are at the head of columns.
  Vector reduced(ArrayRef<Rational> coefficients) const;
  void move(unsigned column, const Rational &by);
  void pivot(unsigned row, unsigned column);
  int firstColumn(ArrayRef<Rational> entries, int direction) const;
  void setMultipliers(ArrayRef<Rational> costs);

  const unsigned variables;
  std::vector<Vector> table;            ///< By row that is no column, its sum.
  std::vector<unsigned> basic, columns; ///< Their variables; rows are after.
  std::vector<int> rowOf, columnOf;     ///< By variable; -1 for none.
  Vector values, lower;                 ///< By variable; lower by row.
};

/// Multipliers for a goal where all premises are non-negative, or nothing.
std::optional<Multipliers> multipliersFor(const Forms &premises,
                                          const Form &goal);

} // namespace ppcc::every
