// Replaces repeated rows of a rank by loops, and unrolls loops.
//
// Algorithm: encode each row as a number of its kind, stage, peer and so on,
// and the step of its microbatch. Two symbols in a row that were last seen
// `period` rows before suggest a repeat with that period: widen it to both
// sides as far as the symbols agree. Take greedily the repeat that saves most
// rows.
// Invariant: a loop is made only of rows that were compared one by one.
// Cost: O(n) of n rows for schedules, whose repeats seldom overlap; at most
// O(n p) with p different periods that overlap.
// Example: 0F0 0B0 0F1 0B1 0F2 0B2 has the symbols (kind, microbatch step)
//   F,0 B,0 F,1 B,0 F,1 B,0   the pair B,0 F,1 is seen again after 2 rows
// The step into the first row does not matter, so the repeat begins at 0F0:
//   loop of 0F0 0B0: 3 iterations, advance 1.
// Two iterations would save 2 rows, the price of a loop, and stay unrolled.
#include "ppcc/Transforms/Passes.h"

#include "ppcc/Analysis/Report/PeakUsage.h"
#include "ppcc/IR/Loops.h"

using namespace ppcc;

namespace {

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

struct RankRoller {
  const Program &program;
  RankId rank;
  /// By site what tells it from others: places in the program's own text are no
  /// part of it.
  ArrayRef<uint32_t> siteOf;

  /// The loops to make, in order; their rows count from the rank's first.
  std::vector<Repeat> run() {
    if (rows < 2)
      return {};
    numberRows();
    findGroups();
    findRepeats();
    return choose();
  }

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

  void findGroups() {
    groupFrom.resize(rows + 1, rows);
    groupUpTo.resize(rows + 1, rows);
    for (uint32_t i = rows; i-- != 0;)
      groupFrom[i] = program.joined(row(i)) ? groupFrom[i + 1] : i;
    for (uint32_t i = 0; i != rows; ++i)
      groupUpTo[i] = program.joined(row(i)) ? groupUpTo[i - 1] : i;
  }

  /// Enters the repeats of whose period two symbols in a row were seen before.
  /// Where a repeat with a period was widened to, it is not found again.
  void findRepeats() {
    DenseMap<std::pair<uint64_t, uint64_t>, uint32_t> lastOf;
    DenseMap<uint32_t, uint32_t> endOf; // By period, of its last repeat.
    for (uint32_t i = 1; i != rows; ++i) {
      auto [last, isNew] = lastOf.try_emplace({symbols[i - 1], symbols[i]}, i);
      uint32_t period = i - std::exchange(last->second, i);
      uint32_t &knownEnd = endOf[period];
      if (isNew || i < knownEnd)
        continue;
      uint32_t begin = i - period - 1, end = i + 1;
      while (begin != 0 && symbols[begin - 1] == symbols[begin - 1 + period])
        --begin;
      while (end != rows && symbols[end] == symbols[end - period])
        ++end;
      knownEnd = end;
      // The first row's step from the one before it is no matter.
      if (begin != 0 && numbers[begin - 1] == numbers[begin - 1 + period])
        --begin;
      push({begin, end, period});
    }
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
      } else {
        repeat.end = end;
        taken.emplace(repeat.begin, repeat);
      }
    }
    std::vector<Repeat> result;
    for (const auto &[begin, repeat] : taken)
      result.push_back(repeat);
    return result;
  }

  const ActionId first = program.begin(rank);
  const uint32_t rows = program.size(rank);
  std::vector<uint32_t> numbers{}; ///< By row.
  std::vector<uint64_t> symbols{}; ///< By row.
  /// By row, and after the last: the first begin of a group from there on, and
  /// the last up to there.
  std::vector<uint32_t> groupFrom{}, groupUpTo{};
  std::priority_queue<Repeat> repeats{}; ///< What saves most comes first.
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
    for (const Repeat &repeat : RankRoller{program, rank, siteOf}.run()) {
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
