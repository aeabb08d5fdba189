#include "ppcc/Support/Suggest.h"

#include <algorithm>

using namespace ppcc;
using llvm::ArrayRef;
using llvm::StringRef;

StringRef ppcc::nearestName(StringRef name, ArrayRef<StringRef> candidates) {
  unsigned limit = std::max<unsigned>(1, std::min<size_t>(name.size(), 64) / 3);
  StringRef best;
  unsigned bestDistance = limit + 1;
  for (StringRef candidate : candidates) {
    if (candidate.empty() || candidate.size() > name.size() + limit ||
        name.size() > candidate.size() + limit)
      continue;
    unsigned distance = name.edit_distance_insensitive(candidate, true, limit);
    // One letter is as near to every other letter as to none.
    if (distance < bestDistance &&
        distance < std::max<size_t>(candidate.size(), 2)) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

std::string ppcc::didYouMean(StringRef name, ArrayRef<StringRef> candidates) {
  StringRef best = nearestName(name, candidates);
  return best.empty() ? "" : "; did you mean `" + best.str() + "`?";
}
