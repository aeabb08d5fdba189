// Finds the name that the user probably meant.
#pragma once

#include "ppcc/Support/LLVM.h"
#include <concepts>

namespace ppcc {

/// The candidate nearest to `name`, or an empty one when none is near (a third
/// of its letters, at least one, may differ; case counts for nothing), or the
/// first that `name`, of three letters or more, is the beginning of. The first
/// of equals wins; a name of more than 200 letters has none. Of thousands of
/// candidates only the first are looked at, so that the work is bounded.
StringRef nearestName(StringRef name, ArrayRef<StringRef> candidates);

/// What didYouMean() gives: `; did you mean `x`?`, or nothing when no candidate
/// is near, the end of a message about an unknown name. Candidates are made
/// when they are asked for: names of the input may be many.
template <std::invocable List> struct Suggestion {
  StringRef name;
  List list;

  /// The candidate that is near; empty for none.
  std::string meant() const { return nearestName(name, list()).str(); }
  operator std::string() const {
    std::string near = meant();
    return near.empty() ? "" : "; did you mean `" + near + "`?";
  }
  friend std::string operator+(std::string text, const Suggestion &suggestion) {
    return std::move(text) + std::string(suggestion);
  }
};
template <std::invocable List>
Suggestion<List> didYouMean(StringRef name, List list) {
  return {name, std::move(list)};
}
/// The same for names that outlive the suggestion.
inline auto didYouMean(StringRef name, ArrayRef<StringRef> candidates) {
  return didYouMean(name, [candidates] { return candidates; });
}

/// `a, b, c`; of more than 40 names the first, and how many more there are.
std::string listed(ArrayRef<StringRef> names);

/// The names of a range's items: what `of`, a member or a function, gives of
/// each.
template <class Range, class Of = std::identity>
std::vector<StringRef> namesIn(const Range &range, Of of = {}) {
  std::vector<StringRef> names;
  for (const auto &item : range)
    names.push_back(std::invoke(of, item));
  return names;
}
/// The same for the names of a range's items.
template <class Range, class Of>
auto didYouMean(StringRef name, const Range &range, Of of) {
  return didYouMean(name, [&range, of] { return namesIn(range, of); });
}

} // namespace ppcc

template <class List>
struct fmt::formatter<ppcc::Suggestion<List>> : fmt::formatter<std::string> {
  auto format(const ppcc::Suggestion<List> &suggestion,
              fmt::format_context &context) const {
    return fmt::formatter<std::string>::format(std::string(suggestion),
                                               context);
  }
};
