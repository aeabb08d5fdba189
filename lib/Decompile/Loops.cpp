// Compresses a sequence of symbols to nested loops.
//
// Algorithm: greedy off-line substitution (Apostolico and Lonardi 2000). Each
// pass finds the repetitions of a body of at most 64 items (the runs of Main
// and Lorentz 1984) by comparing each item with the one a period later. It
// replaces the run that saves most by a loop, and folds the body of that loop
// likewise. Bodies are hash-consed: equal bodies have equal numbers, so that
// two items compare in O(1). `Fold` says which run goes first; RunsFirst joins
// equal neighbours before the first pass.
// Invariant: expanding all loops gives the sequence.
// Cost: O(64 * items) a pass, and each pass removes at least one item, until
// the steps of the table are spent: what is left then stays unfolded.
// WidestLast also tests whether bodies are loops themselves.
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
  for (size_t period = 1; period <= maxPeriod; ++period) {
    size_t run = 0;
    for (size_t i = size - period; i-- != 0;) {
      run = items[i] == items[i + period] ? run + 1 : 0;
      size_t count = run / period + 1, saved = (count - 1) * period;
      // A loop of two is shorter for a letter alone.
      if (count == 1 ||
          (saved == 1 && !(items[i].count == 1 && isSymbol(items[i].body))))
        continue;
      size_t worth = saved;
      if (fold == Fold::WidestLast &&
          isPrimitive(ArrayRef(items).slice(i, period)))
        worth += period * size;
      // The first place of the longest run, or the last, with the smallest
      // period.
      if (worth > best || (!isLast && worth == best && period == length)) {
        best = worth;
        at = i;
        length = period;
        times = count;
      }
    }
  }
  if (times == 0)
    return false;
  Item loop;
  if (length == 1 && items[at].count == 1) {
    loop = {items[at].body, int64_t(times)};
  } else {
    List body(items.begin() + at, items.begin() + at + length);
    foldAll(body, fold);
    loop = {list(std::move(body)), int64_t(times)};
  }
  items.erase(items.begin() + at + 1, items.begin() + at + length * times);
  items[at] = loop;
  return true;
}
