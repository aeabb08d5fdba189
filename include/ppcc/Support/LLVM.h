// What all of the compiler takes from LLVM, fmt and the standard library, and
// the names of LLVM that it uses as its own.
#pragma once

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Casting.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

// Here, so that all files know it: without it, fmt passes a StringRef another
// way, and the same function would be made twice, each for one of them.
template <>
struct fmt::formatter<llvm::StringRef> : fmt::formatter<fmt::string_view> {
  auto format(llvm::StringRef text, fmt::format_context &context) const {
    return formatter<string_view>::format({text.data(), text.size()}, context);
  }
};

namespace ppcc {

using llvm::ArrayRef, llvm::BitVector, llvm::MutableArrayRef;
using llvm::cast, llvm::dyn_cast, llvm::isa, llvm::SmallVector;
using llvm::DenseMap, llvm::DenseSet, llvm::StringMap;
using llvm::function_ref, llvm::raw_ostream, llvm::SmallVectorImpl;
using llvm::SmallString, llvm::StringRef, llvm::Twine;

/// The first of a range's items of which `of`, a member or a function, gives
/// the value; null when there is none.
template <class Range, class Value, class Of>
auto findBy(Range &&range, const Value &value, Of of)
    -> decltype(&*std::begin(range)) {
  for (auto &item : range)
    if (std::invoke(of, item) == value)
      return &item;
  return nullptr;
}

/// The value of an enumeration that has this name, of the names of all.
template <class Enum>
std::optional<Enum> findEnum(ArrayRef<StringRef> names, StringRef name) {
  auto found = llvm::find(names, name);
  return found == names.end()
             ? std::nullopt
             : std::optional(static_cast<Enum>(found - names.begin()));
}

} // namespace ppcc
