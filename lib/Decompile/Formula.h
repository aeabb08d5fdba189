// Expressions of the schedule language for lists of numbers.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc::schedtext {

/// `7 - r` for the values 7, 6, 5 at r = 0, 1, 2 and so on, from `first` on;
/// nothing when they do not lie on a line.
std::optional<std::string> affineExpr(ArrayRef<int64_t> values, int64_t first,
                                      StringRef variable);

/// An expression that has these values from `first` on: lines of whole numbers,
/// joined by conditions.
std::string piecewiseExpr(ArrayRef<int64_t> values, StringRef variable,
                          int64_t first = 0);

/// The same, or a list if that is shorter.
std::string piecewiseExprOrList(ArrayRef<int64_t> values, StringRef variable,
                                int64_t first = 0);

/// For how often a loop runs, where 0 may be any number below 1: a line
/// if there is one.
std::optional<std::string> affineTripCount(ArrayRef<int64_t> values,
                                           int64_t first, StringRef variable);

/// What holds up to, not including, `end`.
struct Piece {
  int64_t end;
  std::string text;
};
/// Conditions on the variable, as a tree, so that they do not nest too deep.
std::string joinPieces(ArrayRef<Piece> pieces, StringRef variable);

/// A formula for numbers that `text` writes.
std::string piecewiseExpr(ArrayRef<int64_t> values, StringRef variable,
                          function_ref<std::string(int64_t)> text);

} // namespace ppcc::schedtext
