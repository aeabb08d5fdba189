// Compresses a sequence of symbols to nested loops.
//
// Algorithm: greedy off-line substitution (Apostolico and Lonardi 2000). Each
// pass finds the repetitions of a body of at most 64 items (the runs of Main
// and Lorentz 1984) by comparing every period-th item with the one a period
// later. It replaces the run that saves most by a loop, and folds the body of
// that loop likewise. Bodies are hash-consed: equal bodies have equal numbers,
// so that two items compare in O(1). `Fold` says which run goes first;
// RunsFirst joins equal neighbours before the first pass. Invariant: expanding
// all loops gives the sequence. Cost: O(items + their runs) a pass, and each
// pass removes at least one item, until the steps of the table are spent: what
// is left then stays unfolded. WidestLast also tests whether bodies are loops
// themselves.
//
// Example: F F B F B F B B.
// Fold::Longest saves 4 items with period 2: F, 3 x (F B), B.
// Fold::RunsFirst has joined F F and B B: 2 x F, 2 x (B F), 2 x B.
#include "ppcc/Decompile/ScheduleText.h"

using namespace ppcc;
using namespace ppcc::schedtext;

BodyTable::List BodyTable::compress(ArrayRef<uint32_t> letters, Fold fold) {
  List items;
  for (uint32_t one : letters) {
    uint32_t body = symbol(one);
    if (fold == Fold::RunsFirst && !items.empty() && items.back().body == body)
      ++items.back().count;
    else
      items.push_back({body, 1});
  }
  foldAll(items, fold);
  return items;
}

uint32_t BodyTable::add(Body body) {
  auto [place, isNew] = numbers.try_emplace(std::move(body), bodies.size());
  if (isNew)
    bodies.push_back(&place->first);
  return place->second;
}

void BodyTable::foldAll(List &items, Fold fold) {
  while (foldOnce(items, fold)) {
  }
}

/// Whether what begins there is not itself a loop.
static bool isPrimitive(ArrayRef<BodyTable::Item> body) {
  for (size_t part = 1; part <= body.size() / 2; ++part)
    if (body.size() % part == 0 &&
        body.drop_front(part) == body.drop_back(part))
      return false;
  return true;
}

bool BodyTable::foldOnce(List &items, Fold fold) {
  constexpr size_t longest = 64;
  bool isLast = fold == Fold::LongestLast || fold == Fold::WidestLast;
  size_t size = items.size(), best = 0, at = 0, length = 0, times = 0;
  size_t maxPeriod = std::min(longest, size / 2);
  if (!spend(maxPeriod * size))
    return false;
  std::vector<uint64_t> words; // To compare at once.
  for (Item item : items)
    words.push_back(std::bit_cast<uint64_t>(item));
  auto repeats = [&](size_t i, size_t period) {
    return words[i] == words[i + period];
  };
  for (size_t period = 1; period <= maxPeriod; ++period)
    // A run that is long enough has an item at a multiple of its period.
    for (size_t i = size / period * period; i >= period;) {
      i -= period;
      if (i + period >= size || !repeats(i, period))
        continue;
      size_t end = i + 1;
      while (i != 0 && repeats(i - 1, period))
        --i;
      while (end + period != size && repeats(end, period))
        ++end;
      size_t saved = (end - i) / period * period, worth = saved;
      bool isSingle = items[i].count == 1 && isSymbol(items[i].body);
      // A loop of two is shorter for a letter alone.
      if (saved > (isSingle ? 0 : 1)) {
        if (fold == Fold::WidestLast &&
            isPrimitive(ArrayRef(items).slice(i, period)))
          worth += period * size;
        // The first place of the longest run, or the last, with the smallest
        // period.
        if (worth > best || (!isLast && worth == best && period == length)) {
          best = worth;
          at = isLast ? end - saved : i;
          length = period;
          times = saved / period + 1;
        }
      }
      i = (i + period - 1) / period * period;
    }
  if (times == 0)
    return false;
  Item loop;
  if (length == 1 && items[at].count == 1) {
    loop = {items[at].body, uint32_t(times)};
  } else {
    List body(items.begin() + at, items.begin() + at + length);
    foldAll(body, fold);
    loop = {list(std::move(body)), uint32_t(times)};
  }
  items.erase(items.begin() + at + 1, items.begin() + at + length * times);
  items[at] = loop;
  return true;
}
