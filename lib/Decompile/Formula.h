// Expressions of the schedule language for lists of numbers.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ppcc::written {

/// `7 - r` for the values 7, 6, 5 at r = 0, 1, 2 and so on, from `first` on;
/// nothing when they do not lie on a line.
std::optional<std::string> line(llvm::ArrayRef<int64_t> values, int64_t first,
                                llvm::StringRef variable);

/// An expression that has these values at 0, 1, 2 and so on: lines of whole
/// numbers, joined by conditions.
std::string formula(llvm::ArrayRef<int64_t> values, llvm::StringRef variable);

/// The same for numbers that `text` writes.
std::string formula(llvm::ArrayRef<int64_t> values, llvm::StringRef variable,
                    llvm::function_ref<std::string(int64_t)> text);

} // namespace ppcc::written
