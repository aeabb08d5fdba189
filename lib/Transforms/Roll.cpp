// Replaces repeated rows of a rank by loops, and unrolls loops.
//
// Algorithm: encode each row as a number of its kind, stage, peer and so on,
// and the step of its microbatch. Shorten long repeats of short periods. Find
// all runs (maximal repetitions) by longest Lyndon words under both orders of
// the symbols (Bannai, I, Inenaga, Nakashima, Takeda, Tsuruta: The "Runs"
// Theorem, SIAM J. Comput. 46(5), 2017). Take greedily the run that saves most
// rows. Longest common extensions use Karp-Rabin hashes (IBM J. Res. Dev. 31,
// 1987) modulo 2^61 - 1, galloping and binary search.
// Invariant: holds() compares the rows of each loop, so a hash collision cannot
// make a wrong loop.
// Cost: O(n log n) to find the runs of n symbols in the shortened sequence.
// Example: 0F0 0B0 0F1 0B1 0F2 0B2 has the symbols (kind, microbatch step)
//   F,0 B,0 F,1 B,0 F,1 B,0   period 2 from the second row on
// The step into the first row does not matter, so the run begins at 0F0:
//   loop of 0F0 0B0: 3 iterations, advance 1.
// Two iterations would save 2 rows, the price of a loop, and stay unrolled.
#include "ppcc/Transforms/Roll.h"

#include "ppcc/Analysis/PeakUsage.h"
#include "ppcc/IR/Loops.h"

using namespace ppcc;

namespace {

/// A list of symbols, of which any two parts can be compared in O(log size).
class Sequence {
public:
  explicit Sequence(std::vector<uint64_t> symbolsOfRows)
      : symbols(std::move(symbolsOfRows)), hashes(symbols.size() + 1),
        powers(symbols.size() + 1) {
    powers[0] = 1;
    for (size_t i = 0; i != symbols.size(); ++i) {
      hashes[i + 1] = reduce(__uint128_t(hashes[i]) * base + symbols[i] + 1);
      powers[i + 1] = reduce(__uint128_t(powers[i]) * base);
    }
  }

  uint32_t size() const { return symbols.size(); }
  uint64_t operator[](uint32_t i) const { return symbols[i]; }

  /// The length that what begins at `i` and at `j`, after it, have in common.
  uint32_t extendRight(uint32_t i, uint32_t j) const {
    return longest(size() - j, [&](uint32_t length) {
      return hash(i, i + length) == hash(j, j + length);
    });
  }
  /// The same of what ends before `i` and before `j`.
  uint32_t extendLeft(uint32_t i, uint32_t j) const {
    return longest(i, [&](uint32_t length) {
      return hash(i - length, i) == hash(j - length, j);
    });
  }

private:
  static constexpr uint64_t prime = (uint64_t(1) << 61) - 1;
  static constexpr uint64_t base = 0x0A5B1C9E3D7F2468;

  static uint64_t reduce(__uint128_t value) {
    uint64_t sum = static_cast<uint64_t>(value & prime) +
                   static_cast<uint64_t>(value >> 61);
    return sum >= prime ? sum - prime : sum;
  }
  uint64_t hash(uint32_t begin, uint32_t end) const {
    uint64_t head = reduce(__uint128_t(hashes[begin]) * powers[end - begin]);
    return hashes[end] >= head ? hashes[end] - head
                               : hashes[end] + prime - head;
  }
  /// The largest length up to `limit` for which `same` holds, as it does for
  /// all below. Most are short.
  template <class Same> static uint32_t longest(uint32_t limit, Same same) {
    uint32_t good = 0, bad = 1;
    while (bad <= limit && same(bad)) {
      good = bad;
      bad = std::min<uint64_t>(uint64_t(bad) * 2, uint64_t(limit) + 1);
    }
    bad = std::min(bad, limit + 1);
    while (bad - good > 1) {
      uint32_t middle = good + (bad - good) / 2;
      (same(middle) ? good : bad) = middle;
    }
    return good;
  }

  std::vector<uint64_t> symbols, hashes, powers;
};

/// A stretch of a rank in which rows repeat after `period` rows.
struct Repeat {
  uint32_t begin, end, period;

  uint32_t iterations() const { return (end - begin) / period; }
  /// The rows that a loop leaves out; it costs some itself.
  uint32_t saved() const {
    constexpr uint32_t price = 2;
    uint32_t rows = iterations() < 2 ? 0 : (iterations() - 1) * period;
    return rows > price ? rows - price : 0;
  }
  bool operator<(const Repeat &other) const {
    return std::tuple(saved(), other.begin, other.period) <
           std::tuple(other.saved(), begin, period);
  }
};

class RankRoller {
public:
  /// `siteOf` holds by site what tells it from others: places in the program's
  /// own text are no part of it.
  RankRoller(const Program &program, RankId rank, ArrayRef<uint32_t> siteOf)
      : program(program), first(program.begin(rank)), rows(program.size(rank)),
        siteOf(siteOf) {}

  /// The loops to make, in order; their rows count from the rank's first.
  std::vector<Repeat> run() {
    if (rows < 2)
      return {};
    numberRows();
    findGroups();
    compressRepeats();
    findRepeats();
    return choose();
  }

private:
  ActionId row(uint32_t i) const { return ActionId(first.value + i); }

  /// Gives the rows numbers, the same to those that differ in their microbatch
  /// alone, and symbols, the same where the steps from the microbatches before
  /// are too.
  void numberRows() {
    DenseMap<std::pair<uint64_t, uint32_t>, uint32_t> numberOf;
    symbols.resize(rows);
    numbers.resize(rows);
    uint32_t before = 0;
    for (uint32_t i = 0; i != rows; ++i) {
      Action action = program[row(i)];
      uint64_t key = uint64_t(action.kind.value) << 56 |
                     uint64_t(action.pipe.value) << 48 |
                     uint64_t(action.stage.value) << 32 |
                     uint64_t(action.peer.value) << 16 |
                     action.phase.value << 1 | action.joined;
      // An action without a microbatch runs once.
      numbers[i] = action.hasMicrobatch()
                       ? numberOf
                             .try_emplace({key, siteOf[action.site.value]},
                                          numberOf.size())
                             .first->second
                       : UINT32_MAX - i;
      symbols[i] = uint64_t(numbers[i]) << 32 | (action.microbatch - before);
      before = action.microbatch;
    }
    symbols[0] = uint64_t(numbers[0]) << 32;
  }

  /// Makes the sequence of the symbols, where a mark stands for what lies in
  /// the middle of many short iterations. All that is found in it is widened in
  /// the whole.
  void compressRepeats() {
    constexpr uint32_t maxPeriod = 64, minIterations = 8, kept = 2,
                       none = UINT32_MAX;
    std::vector<uint64_t> shorter;
    uint32_t taken = 0; // Of the rows.
    auto takeUntil = [&](uint32_t end) {
      for (; taken != end; ++taken) {
        places.push_back(taken);
        shorter.push_back(symbols[taken]);
      }
    };
    // Where four symbols in a row were seen last.
    std::vector<uint32_t> last(4096, none);
    for (uint32_t i = 3; i < rows; ++i) {
      uint64_t hash = 0;
      for (uint32_t k = 0; k != 4; ++k)
        hash = (hash ^ symbols[i - k]) * 0x9E3779B97F4A7C15;
      uint32_t seen = std::exchange(last[hash >> 52], i), period = i - seen;
      if (seen == none || period > maxPeriod)
        continue;
      uint32_t begin = std::max(seen, taken), end = i;
      while (end != rows && symbols[end] == symbols[end - period])
        ++end;
      while (begin > taken && symbols[begin - 1] == symbols[begin - 1 + period])
        --begin;
      uint32_t iterations = (end - begin) / period;
      if (iterations < minIterations)
        continue;
      takeUntil(begin + kept * period);
      uint64_t mark = iterations - 2 * kept;
      for (uint32_t k = begin; k != begin + period; ++k)
        mark = (mark ^ symbols[k]) * 0x9E3779B97F4A7C15;
      places.push_back(taken);
      shorter.push_back(mark | uint64_t(1) << 63);
      taken += (iterations - 2 * kept) * period;
      i = end - 1;
    }
    takeUntil(rows);
    places.push_back(rows);
    sequence.emplace(std::move(shorter));
  }

  void findGroups() {
    groupFrom.resize(rows + 1, rows);
    groupUpTo.resize(rows + 1, rows);
    for (uint32_t i = rows; i-- != 0;)
      groupFrom[i] = program.joined(row(i)) ? groupFrom[i + 1] : i;
    for (uint32_t i = 0; i != rows; ++i)
      groupUpTo[i] = program.joined(row(i)) ? groupUpTo[i - 1] : i;
  }

  uint32_t microbatch(uint32_t i) const { return program[row(i)].microbatch; }

  /// Enters the runs of the sequence that save something. Each has the longest
  /// Lyndon word of one of its rows as its period, in the order of the symbols
  /// or in the opposite order.
  void findRepeats() {
    uint32_t size = sequence->size();
    for (bool reversedOrder : {false, true}) {
      std::vector<uint32_t> next{size};
      for (uint32_t i = size; i-- != 0;) {
        while (next.size() > 1 && precedes(i, next.back(), reversedOrder))
          next.pop_back();
        addRepeat(i, next.back());
        next.push_back(i);
      }
    }
  }

  /// Whether the rest from `i` on comes before that from `j` on, after it.
  bool precedes(uint32_t i, uint32_t j, bool reversedOrder) const {
    uint32_t same = sequence->extendRight(i, j);
    if (j + same == sequence->size())
      return false; // What ends first comes first.
    uint64_t a = (*sequence)[i + same], b = (*sequence)[j + same];
    return reversedOrder ? b < a : a < b;
  }

  void addRepeat(uint32_t i, uint32_t j) {
    uint32_t begin = i - sequence->extendLeft(i, j);
    uint32_t end = j + sequence->extendRight(i, j);
    uint32_t period = places[j] - places[i];
    if (!found.insert({begin, j - i}).second)
      return;
    begin = places[begin];
    end = places[end];
    while (begin != 0 && symbols[begin - 1] == symbols[begin - 1 + period])
      --begin;
    while (end < rows && symbols[end] == symbols[end - period])
      ++end;
    if (!widened.insert({begin, period}).second)
      return;
    // The first row's step from the one before it is no matter.
    if (begin != 0 && numbers[begin - 1] == numbers[begin - 1 + period] &&
        end - begin >= period)
      --begin;
    push({begin, end, period});
  }

  /// A loop holds whole groups, so a joined row after it would belong to it.
  void push(Repeat repeat) {
    repeat.begin = groupFrom[repeat.begin];
    repeat.end = groupUpTo[repeat.end];
    if (repeat.begin < repeat.end && repeat.saved() != 0)
      repeats.push(repeat);
  }

  /// Takes the one that saves most, cuts the others down to what is left, and
  /// so on.
  std::vector<Repeat> choose() {
    std::map<uint32_t, Repeat> taken; // By begin.
    while (!repeats.empty()) {
      Repeat repeat = repeats.top();
      repeats.pop();
      uint32_t end = repeat.begin + repeat.iterations() * repeat.period;
      auto after = taken.lower_bound(repeat.begin);
      if (after != taken.begin() &&
          std::prev(after)->second.end > repeat.begin) {
        uint32_t from = std::prev(after)->second.end;
        if (from < repeat.end)
          push({from, repeat.end, repeat.period});
      } else if (after != taken.end() && after->first < end) {
        push({repeat.begin, after->first, repeat.period});
        if (after->second.end < repeat.end)
          push({after->second.end, repeat.end, repeat.period});
      } else if (holds(repeat, end)) {
        repeat.end = end;
        taken.emplace(repeat.begin, repeat);
      }
    }
    std::vector<Repeat> result;
    for (const auto &[begin, repeat] : taken)
      result.push_back(repeat);
    return result;
  }

  /// Hashes may agree by chance, so the rows are compared.
  bool holds(const Repeat &repeat, uint32_t end) const {
    uint32_t advance =
        microbatch(repeat.begin + repeat.period) - microbatch(repeat.begin);
    for (uint32_t i = repeat.begin; i + repeat.period != end; ++i)
      if (numbers[i] != numbers[i + repeat.period] ||
          microbatch(i + repeat.period) - microbatch(i) != advance)
        return false;
    return true;
  }

  const Program &program;
  ActionId first;
  uint32_t rows;
  ArrayRef<uint32_t> siteOf;
  std::vector<uint32_t> numbers; ///< By row.
  std::vector<uint64_t> symbols; ///< By row.
  /// By row, and after the last: the first begin of a group from there on, and
  /// the last up to there.
  std::vector<uint32_t> groupFrom, groupUpTo;
  std::optional<Sequence> sequence;
  std::vector<uint32_t> places; ///< Of the sequence: the row, and the end.
  /// Begins and periods, in the sequence and of rows.
  DenseSet<std::pair<uint32_t, uint32_t>> found, widened;
  std::priority_queue<Repeat> repeats; ///< What saves most comes first.
};

} // namespace

Program ppcc::rolled(const Program &program) {
  assert(program.loops().empty() && "the program is flat");
  Rows result;
  std::vector<uint32_t> siteOf(program.sites().size());
  for (size_t i = 1; i < siteOf.size(); ++i)
    siteOf[i] = program.files()[program.sites()[i].file].own ? 0 : i;
  for (RankId rank : program.ranks()) {
    result.beginRank();
    ActionId begin = program.begin(rank), row = begin;
    auto append = [&](ActionId end) {
      for (; row != end; ++row.value)
        result.append(program[row]);
      return ActionId(result.size());
    };
    for (const Repeat &repeat : RankRoller(program, rank, siteOf).run()) {
      Loop loop;
      loop.count = repeat.iterations();
      loop.begin = append(ActionId(begin.value + repeat.begin));
      ActionId second(row.value + repeat.period);
      loop.advance = static_cast<int32_t>(program[second].microbatch -
                                          program[row].microbatch);
      loop.end = append(second);
      result.loops.push_back(loop);
      row = ActionId(begin.value + repeat.end);
    }
    append(program.end(rank));
  }
  return program.withEquivalentRows(std::move(result));
}

PassResult ppcc::roll(Program &program, PassContext &) {
  Program result = rolled(program);
  if (result.loops().empty())
    return PassResult::Unchanged;
  PeakUsage facts = peakUsage(program);
  program = std::move(result);
  keep(std::move(facts), program);
  return PassResult::Changed;
}

PassResult ppcc::unroll(Program &program, PassContext &) {
  if (program.loops().empty())
    return PassResult::Unchanged;
  program = unrolled(program);
  return PassResult::Changed;
}
