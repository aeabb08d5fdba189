// Solves linear programs in exact rationals: feasibility and minimum, with
// multipliers that prove infeasibility (Farkas' lemma) or the minimum (LP
// duality), or with a ray along which the objective falls without bound.
//
// Algorithm: the general simplex of Dutertre and de Moura (2006) for
// feasibility, then the primal simplex for the minimum. Both take the smallest
// index (Bland 1977), so they terminate. Variables have no bounds; rows, which
// are sums of them, have lower bounds.
// Invariant: each basic variable equals its row of `table` times the nonbasic
// variables, and each nonbasic row variable is at its lower bound.
// Cost: O(rows * columns) a pivot; all pivots of a thread together change at
// most maxWork entries, else WorkLimitReached.
// Example: minimize x.
//   x >= 2: minimum 2 with multiplier 1.
//   x >= 2, -x >= -1: infeasible, multipliers 1, 1 (their sum is 0 >= 1).
//   minimize -x instead, x >= 2: no minimum, ray 1.
#pragma once

#include "ppcc/EveryP/Form.h"
#include "ppcc/Proof/Formula.h"

namespace ppcc::every {

using Vector = std::vector<Rational>;

/// Quotients as whole numbers with a common denominator, which is given back.
inline int64_t toCommonDenominator(ArrayRef<Rational> values,
                                   std::vector<int64_t> &whole) {
  Rational common = 1;
  for (const Rational &value : values)
    common = common * Rational(common.numerator, value.denominator).denominator;
  whole.clear();
  auto narrow = [](const Rational &value) {
    if (value < -INT64_MAX || INT64_MAX < value)
      throw std::overflow_error("fraction");
    return static_cast<int64_t>(value.numerator);
  };
  for (const Rational &value : values)
    whole.push_back(narrow(Rational(value.numerator) *
                           (common.numerator / value.denominator)));
  return narrow(common);
}

/// What a form multiplies P.. with.
inline Vector linear(const Form &form) {
  return {form.at.begin() + P, form.at.end()};
}

/// Thrown when all searches together take too long.
struct WorkLimitReached {};

/// Variables without bounds, and rows: sums of them that have lower bounds.
/// Bland's rule: it ends.
class Simplex {
public:
  explicit Simplex(unsigned variables)
      : variables(variables), columns(variables), rowOf(variables, -1),
        columnOf(variables), values(variables) {
    std::iota(columns.begin(), columns.end(), 0);
    std::iota(columnOf.begin(), columnOf.end(), 0);
  }
  /// Of the numbers for which all of `premises` are non-negative.
  explicit Simplex(const Forms &premises) : Simplex(numDims - 1) {
    for (const Form &premise : premises)
      require(linear(premise), -premise.at[One]);
  }

  /// Asks for coefficients * variables >= least.
  void require(ArrayRef<Rational> coefficients, Rational lowerBound) {
    Rational value = std::inner_product(
        coefficients.begin(), coefficients.end(), values.begin(), Rational());
    table.push_back(reduced(coefficients));
    rowOf.push_back(basic.size());
    columnOf.push_back(-1);
    basic.push_back(values.size());
    values.push_back(value);
    lower.push_back(lowerBound);
  }
  /// Whether all rows can be had at once; else `multipliers`, by row, show that
  /// they contradict each other.
  bool isFeasible() {
    while (true) {
      int row = -1; // The first variable below its bound.
      for (unsigned r = 0; r != table.size(); ++r)
        if (basic[r] >= variables &&
            values[basic[r]] < lower[basic[r] - variables] &&
            (row < 0 || basic[r] < basic[row]))
          row = r;
      if (row < 0)
        return true;
      int column = firstColumn(table[row], 1);
      if (column < 0) {
        Vector costs;
        for (const Rational &entry : table[row])
          costs.push_back(-entry);
        setMultipliers(costs);
        multipliers[basic[row] - variables] = 1;
        return false;
      }
      move(column, (lower[basic[row] - variables] - values[basic[row]]) /
                       table[row][column]);
      pivot(row, column);
    }
  }
  /// Of what is feasible. True with the least value, and with `multipliers`
  /// that show it, else false with a `ray` along which it falls for ever.
  bool minimize(ArrayRef<Rational> objective) {
    while (true) {
      Vector costs = reduced(objective);
      int column = firstColumn(costs, -1);
      if (column < 0) {
        setMultipliers(costs);
        minimum = std::inner_product(objective.begin(), objective.end(),
                                     values.begin(), Rational());
        return true;
      }
      Rational sign = costs[column].sign() < 0 ? 1 : -1, step;
      int row = -1; // The first variable that comes to its bound.
      for (unsigned r = 0; r != table.size(); ++r) {
        Rational fall = -(sign * table[r][column]);
        if (basic[r] < variables || fall.sign() <= 0)
          continue;
        Rational room = (values[basic[r]] - lower[basic[r] - variables]) / fall;
        if (row < 0 || room < step || (!(step < room) && basic[r] < basic[row]))
          std::tie(row, step) = std::tuple(r, room);
      }
      if (row < 0) {
        ray.assign(variables, Rational());
        for (unsigned i = 0; i != variables; ++i)
          if (columnOf[i] == column)
            ray[i] = sign;
          else if (rowOf[i] >= 0)
            ray[i] = sign * table[rowOf[i]][column];
        return false;
      }
      move(column, sign * step);
      pivot(row, column);
    }
  }

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
  Vector reduced(ArrayRef<Rational> coefficients) const {
    Vector row(columns.size());
    for (unsigned i = 0; i != coefficients.size(); ++i) {
      if (coefficients[i].sign() == 0)
        continue;
      if (columnOf[i] >= 0) {
        row[columnOf[i]] = row[columnOf[i]] + coefficients[i];
        continue;
      }
      const Vector &other = table[rowOf[i]];
      for (unsigned c = 0; c != row.size(); ++c)
        if (other[c].sign() != 0)
          row[c] = row[c] + coefficients[i] * other[c];
    }
    return row;
  }
  void move(unsigned column, const Rational &by) {
    values[columns[column]] = values[columns[column]] + by;
    for (unsigned r = 0; r != table.size(); ++r)
      if (table[r][column].sign() != 0)
        values[basic[r]] = values[basic[r]] + by * table[r][column];
  }
  void pivot(unsigned row, unsigned column) {
    if ((work += table.size() * columns.size()) > maxWork)
      throw WorkLimitReached();
    Vector &pivotRow = table[row];
    Rational inverse = Rational(1) / pivotRow[column];
    for (Rational &entry : pivotRow)
      entry = -(entry * inverse);
    pivotRow[column] = inverse;
    for (unsigned r = 0; r != table.size(); ++r) {
      Rational factor = table[r][column];
      if (r == row || factor.sign() == 0)
        continue;
      table[r][column] = Rational();
      for (unsigned c = 0; c != columns.size(); ++c)
        if (pivotRow[c].sign() != 0)
          table[r][c] = table[r][c] + factor * pivotRow[c];
    }
    std::swap(basic[row], columns[column]);
    rowOf[basic[row]] = row;
    columnOf[basic[row]] = -1;
    columnOf[columns[column]] = column;
    rowOf[columns[column]] = -1;
  }
  /// The first variable at the head of a column that may move in its way: one
  /// without bounds may in both.
  int firstColumn(ArrayRef<Rational> entries, int direction) const {
    int column = -1;
    for (unsigned c = 0; c != columns.size(); ++c)
      if (int sign = entries[c].sign();
          (sign == direction ||
           (sign == -direction && columns[c] < variables)) &&
          (column < 0 || columns[c] < columns[column]))
        column = c;
    return column;
  }
  void setMultipliers(ArrayRef<Rational> costs) {
    multipliers.assign(lower.size(), Rational());
    for (unsigned c = 0; c != columns.size(); ++c)
      if (columns[c] >= variables)
        multipliers[columns[c] - variables] = costs[c];
  }

  const unsigned variables;
  std::vector<Vector> table;            ///< By row that is no column, its sum.
  std::vector<unsigned> basic, columns; ///< Their variables; rows are after.
  std::vector<int> rowOf, columnOf;     ///< By variable; -1 for none.
  Vector values, lower;                 ///< By variable; lower by row.
};

/// Multipliers for a goal where all premises are non-negative, or nothing.
inline std::optional<Multipliers> multipliersFor(const Forms &premises,
                                                 const Form &goal) {
  Simplex simplex(premises);
  bool isFeasible = simplex.isFeasible();
  Rational rest;
  if (isFeasible) {
    if (!simplex.minimize(linear(goal)))
      return std::nullopt;
    rest = simplex.minimum + goal.at[One];
    if (rest.sign() < 0)
      return std::nullopt;
  } else {
    for (size_t i = 0; i != premises.size(); ++i)
      rest = rest - simplex.multipliers[i] * premises[i].at[One];
  }
  Vector all = simplex.multipliers;
  all.push_back(rest);
  all.push_back(isFeasible ? 1 : 0);
  Multipliers result;
  toCommonDenominator(all, result.ofPremises);
  result.scale = result.ofPremises.back();
  result.ofPremises.pop_back();
  result.rest = result.ofPremises.back();
  result.ofPremises.pop_back();
  return result;
}

} // namespace ppcc::every
