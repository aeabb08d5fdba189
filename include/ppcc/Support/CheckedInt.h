// 64-bit arithmetic that says when it would overflow, with division and
// remainder that floor.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// a + b, or nothing when it does not fit.
inline std::optional<int64_t> checkedAdd(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_add_overflow(a, b, &result) ? std::nullopt
                                               : std::optional(result);
}

/// a - b, or nothing when it does not fit.
inline std::optional<int64_t> checkedSub(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_sub_overflow(a, b, &result) ? std::nullopt
                                               : std::optional(result);
}

/// a * b, or nothing when it does not fit.
inline std::optional<int64_t> checkedMul(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_mul_overflow(a, b, &result) ? std::nullopt
                                               : std::optional(result);
}

/// The largest integer not above a / b, or nothing for b = 0 and for the one
/// quotient that does not fit.
inline std::optional<int64_t> floorDiv(int64_t a, int64_t b) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min()))
    return std::nullopt;
  int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/// a - b * floorDiv(a, b): it has the sign of b. Nothing for b = 0.
inline std::optional<int64_t> floorMod(int64_t a, int64_t b) {
  if (b == 0)
    return std::nullopt;
  if (b == -1)
    return 0;
  int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b
                                                      : remainder;
}

} // namespace ppcc
