// Expressions for lists of numbers.
#include "Formula.h"

#include "ppcc/Basic/Diagnostics.h" // Formats StringRef, in all files alike.

using namespace ppcc;
using schedtext::Piece;

std::optional<std::string> schedtext::affineExpr(ArrayRef<int64_t> values,
                                                 int64_t first,
                                                 StringRef variable) {
  int64_t slope = values.size() > 1 ? values[1] - values[0] : 0;
  for (size_t i = 1; i < values.size(); ++i)
    if (values[i] - values[i - 1] != slope)
      return std::nullopt;
  int64_t base = values[0] - slope * first;
  if (slope == 0)
    return fmt::format("{}", base);
  int64_t size = slope < 0 ? -slope : slope;
  std::string term =
      size == 1 ? variable.str() : fmt::format("{} * {}", size, variable);
  if (slope < 0)
    return base == 0 ? "-" + term : fmt::format("{} - {}", base, term);
  return base == 0  ? term
         : base > 0 ? fmt::format("{} + {}", base, term)
                    : fmt::format("{} - {}", term, -base);
}

std::string schedtext::joinPieces(ArrayRef<Piece> pieces, StringRef variable) {
  if (pieces.size() == 1)
    return pieces.front().text;
  size_t half = pieces.size() < 4 ? 1 : pieces.size() / 2;
  std::string low = joinPieces(pieces.take_front(half), variable),
              high = joinPieces(pieces.drop_front(half), variable);
  if (half > 1)
    low = "(" + low + ")";
  return fmt::format("{} < {} ? {} : {}", variable, pieces[half - 1].end, low,
                     high);
}

std::string schedtext::piecewiseExpr(ArrayRef<int64_t> values,
                                     StringRef variable, int64_t first) {
  std::vector<Piece> pieces;
  for (size_t begin = 0; begin != values.size();) {
    size_t end = begin + 1;
    while (end != values.size() &&
           affineExpr(values.slice(begin, end + 1 - begin), first + begin,
                      variable))
      ++end;
    // A line of two may hide that the second begins another one.
    if (end == begin + 2 && end != values.size() &&
        values[begin] != values[begin + 1])
      --end;
    pieces.push_back(
        {first + int64_t(end), *affineExpr(values.slice(begin, end - begin),
                                           first + begin, variable)});
    begin = end;
  }
  return joinPieces(pieces, variable);
}

std::optional<std::string> schedtext::affineTripCount(ArrayRef<int64_t> values,
                                                      int64_t first,
                                                      StringRef variable) {
  auto isSome = [](int64_t value) { return value > 0; };
  size_t begin = llvm::find_if(values, isSome) - values.begin();
  size_t count = llvm::count_if(values, isSome);
  if (count == 0)
    return "0";
  ArrayRef<int64_t> some =
      values.slice(begin, std::min(count, values.size() - begin));
  if (!llvm::all_of(some, isSome))
    return std::nullopt;
  size_t after = values.size() - begin - count;
  int64_t slope = count > 1 ? some[1] - some[0]
                  : begin   ? (after ? 0 : some[0])
                  : after   ? -some[0]
                            : 0;
  // What it is beyond its ends runs nothing.
  if ((begin != 0 && some.front() - slope > 0) ||
      (after != 0 && some.back() + slope > 0))
    return std::nullopt;
  std::vector<int64_t> two{some[0], some[0] + slope};
  if (count < 2)
    return affineExpr(slope == 0 ? some : ArrayRef(two), first + begin,
                      variable);
  return affineExpr(some, first + begin, variable);
}

std::string schedtext::piecewiseExprOrList(ArrayRef<int64_t> values,
                                           StringRef variable, int64_t first) {
  std::string pieces = piecewiseExpr(values, variable, first);
  std::string list = fmt::format(
      "[{}][{}]", fmt::join(values, ", "),
      first == 0 ? variable.str() : fmt::format("{} - {}", variable, first));
  return list.size() < pieces.size() ? list : pieces;
}

std::string schedtext::piecewiseExpr(ArrayRef<int64_t> values,
                                     StringRef variable,
                                     function_ref<std::string(int64_t)> text) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i != values.size(); ++i)
    if (i + 1 == values.size() || values[i + 1] != values[i])
      pieces.push_back({int64_t(i) + 1, text(values[i])});
  return joinPieces(pieces, variable);
}
