#include "ppcc/Support/Suggest.h"

using namespace ppcc;

/// A longer name is nobody's; the distance takes the product of two lengths.
static constexpr size_t maxNameLength = 200;
/// The sum of these products for one name.
static constexpr size_t maxWork = size_t(1) << 20;

/// Whether two neighbouring letters have changed places: one slip, not two.
static bool isTransposed(StringRef a, StringRef b) {
  if (a.size() != b.size())
    return false;
  size_t at = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
  return at + 1 < a.size() && a[at] == b[at + 1] && a[at + 1] == b[at] &&
         a.drop_front(at + 2) == b.drop_front(at + 2);
}

StringRef ppcc::nearestName(StringRef name, ArrayRef<StringRef> candidates) {
  if (name.size() > maxNameLength)
    return "";
  unsigned limit = std::max<unsigned>(1, name.size() / 3);
  StringRef best;
  std::string lower = name.lower();
  unsigned bestDistance = limit + 1;
  size_t work = 0;
  for (StringRef candidate : candidates) {
    if (best.empty() && name.size() >= 3 &&
        candidate.starts_with_insensitive(name))
      best = candidate; // Unless one is near.
    if (candidate.empty() || candidate.size() > name.size() + limit ||
        name.size() > candidate.size() + limit)
      continue;
    if ((work += name.size() * candidate.size()) > maxWork)
      break;
    std::string other = candidate.lower();
    unsigned distance =
        isTransposed(lower, other)
            ? 1
            : StringRef(lower).edit_distance(other, true, limit);
    // One letter is as near to every other letter as to none.
    if (distance < bestDistance && distance < candidate.size()) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

std::string ppcc::listed(ArrayRef<StringRef> names) {
  constexpr size_t maxShown = 40;
  std::string text = llvm::join(names.take_front(maxShown), ", ");
  if (names.size() > maxShown)
    text += fmt::format(" and {} more", names.size() - maxShown);
  return text;
}
