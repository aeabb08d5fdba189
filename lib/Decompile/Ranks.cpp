// Writes one text for ranks that differ only in the trip counts of their loops.
//
// Algorithm: a cover is a text with loops and the ranks that it fits, with
// their trip counts. It grows rank by rank: counts are extrapolated, taken from
// a text of the same shape, or fitted by dynamic programming (tripCountsOf). A
// shortest-path DP over the ranks then chooses the cheapest pieces of covers. A
// piece is consecutive ranks; its counts are formulas or lists over the ranks.
// writeRanks() also tries every second and third rank apart, and each phase
// apart, and keeps the shortest text.
// Invariant: with the counts of a rank, its cover unfolds to its actions.
// Cost: at most 4 covers a rank, so at most 8 * ranks^2 trial texts in a DP.
//
// Example: 1F1B, P = 4, M = 8, without phases.
// Rank 0: 4 x F  4 x (B F)  4 x B; rank 2: 2 x F  6 x (B F)  2 x B.
// Rank 3: 8 x (F B), which is also 1 x F  7 x (B F)  1 x B.
// All ranks: (4 - r) x F  (4 + r) x (B F)  (4 - r) x B.
#include "Formula.h"
#include "ppcc/Basic/Diagnostics.h" // Formats StringRef, in all files alike.
#include "ppcc/Decompile/ScheduleText.h"

using namespace ppcc;
using namespace ppcc::schedtext;

Phases schedtext::splitIntoPhases(ArrayRef<uint32_t> letters, size_t firstBack,
                                  size_t lastForward) {
  auto part = [&](size_t begin, size_t end) {
    return letters.slice(begin, end - begin).vec();
  };
  return {{"warmup", part(0, firstBack)},
          {"steady", part(firstBack, lastForward)},
          {"cooldown", part(lastForward, letters.size())}};
}

RankText ScheduleText::textOf(const Phases &phases, uint32_t mark,
                              BodyTable::Fold fold) {
  RankText text;
  text.shape.push_back(mark);
  for (const auto &[name, letters] : phases) {
    if (letters.empty())
      continue;
    text.phases.push_back({name, bodyTable.compress(letters, fold)});
    text.shape.push_back(
        phaseNumbers.try_emplace(name, phaseNumbers.size()).first->second);
    shapeOf(text.phases.back().items, text.shape, text.counts);
  }
  return text;
}

void ScheduleText::shapeOf(const BodyTable::List &list,
                           std::vector<uint32_t> &shape,
                           std::vector<TripCount> &counts) const {
  shape.push_back(~0u);
  for (BodyTable::Item item : list) {
    counts.push_back({item.count});
    if (bodyTable.isSymbol(item.body))
      shape.push_back(bodyTable.symbolOf(item.body));
    else
      shapeOf(bodyTable.listOf(item.body), shape, counts);
  }
  shape.push_back(~1u);
}

namespace {

using TripCounts = std::vector<TripCount>;

/// How often each of the words comes, one after another, for all to be the
/// letters: as often as can be for those in front. O(words * letters).
std::optional<std::vector<int64_t>>
tripCountsOf(ArrayRef<std::vector<uint32_t>> words,
             ArrayRef<uint32_t> letters) {
  constexpr size_t maxCells = 1 << 20;
  size_t width = letters.size() + 1;
  if (words.size() > maxCells / width)
    return std::nullopt;
  // Whether the words from one on can be all letters from a place on.
  std::vector<bool> fits((words.size() + 1) * width);
  fits.back() = true;
  auto repeatsAt = [&](size_t word, size_t at) {
    size_t length = words[word].size();
    return length <= letters.size() - at && fits[word * width + at + length] &&
           letters.slice(at, length) == ArrayRef(words[word]);
  };
  for (size_t word = words.size(); word-- != 0;)
    for (size_t at = width; at-- != 0;)
      fits[word * width + at] =
          fits[(word + 1) * width + at] || repeatsAt(word, at);
  if (!fits.front())
    return std::nullopt;
  std::vector<int64_t> counts(words.size());
  for (size_t word = 0, at = 0; word != words.size(); ++word)
    for (; repeatsAt(word, at); at += words[word].size())
      ++counts[word];
  return counts;
}

/// Ranks, each `stride` after the other, whose texts stand side by side.
class RankGroups {
public:
  RankGroups(ScheduleText &out, std::vector<RankText> given, uint32_t first,
             uint32_t stride, const std::string &periods,
             ScheduleText::Statement statement, StringRef variable)
      : out(out), texts(std::move(given)), first(first), stride(stride),
        periods(periods), statement(statement), variable(variable) {
    if (isFamily())
      return;
    for (const RankText &text : texts)
      words.push_back(*unfold(text, text.counts, SIZE_MAX));
  }

  /// In the pieces that cost least.
  void write() {
    findCovers();
    struct Step {
      size_t cost = SIZE_MAX;
      uint32_t from = 0;
      std::string lines;
    };
    std::vector<Step> best(texts.size() + 1);
    best.front().cost = 0;
    for (uint32_t begin = 0; begin != texts.size(); ++begin)
      for (const Cover &cover : covers)
        if (cover.begin <= begin && begin < cover.end() &&
            best[begin].cost != SIZE_MAX)
          for (uint32_t end : {lineEnd(cover, begin), cover.end()}) {
            // With M in it, a count is a line over the ranks or not written.
            if (isFamily() && end != lineEnd(cover, begin))
              continue;
            auto [lines, cost] =
                out.trial([&] { writePiece(cover, begin, end); });
            if (best[begin].cost + cost < best[end].cost)
              best[end] = {best[begin].cost + cost, begin, std::move(lines)};
          }
    std::vector<uint32_t> ends;
    for (uint32_t end = texts.size(); end != 0; end = best[end].from)
      ends.push_back(end);
    for (uint32_t end : llvm::reverse(ends))
      out.put(best[end].lines);
  }

private:
  /// The ranks that one text stands for, with what its loops count on them.
  struct Cover {
    RankText text;
    uint32_t begin;
    std::deque<TripCounts> counts;

    uint32_t end() const { return begin + counts.size(); }
    const TripCounts &of(uint32_t rank) const { return counts[rank - begin]; }
  };

  bool isFamily() const { return !periods.empty(); }
  uint32_t rankOf(uint32_t text) const { return first + text * stride; }

  size_t lettersOf(uint32_t rank) const {
    size_t letters = 0;
    for (const auto &[name, part] : words[rank])
      letters += part.size();
    return letters;
  }

  /// The text of each rank, and one with other loops, as far as each goes.
  void findCovers() {
    constexpr size_t maxSymbols = 4096, maxFoldedRanks = 32;
    for (uint32_t rank = 0; rank != texts.size(); ++rank) {
      add(texts[rank], rank);
      size_t letters = isFamily() ? 0 : lettersOf(rank);
      if (letters != 0 && letters <= maxSymbols &&
          texts.size() <= maxFoldedRanks)
        for (auto fold :
             {BodyTable::Fold::Longest, BodyTable::Fold::LongestLast,
              BodyTable::Fold::WidestLast})
          add(out.textOf(words[rank], texts[rank].shape.front(), fold), rank);
    }
  }

  void add(RankText text, uint32_t rank) {
    if (llvm::any_of(covers, [&](const Cover &known) {
          return known.text.shape == text.shape && known.begin <= rank &&
                 rank < known.end();
        }))
      return;
    Cover cover{std::move(text), rank, {}};
    cover.counts.push_back(cover.text.counts);
    while (cover.end() != texts.size()) {
      size_t size = cover.counts.size();
      auto next = countsFor(cover, cover.end(), cover.counts.back(),
                            size > 1 ? &cover.counts[size - 2] : nullptr);
      if (!next)
        break;
      cover.counts.push_back(std::move(*next));
    }
    while (cover.begin != 0) {
      auto next =
          countsFor(cover, cover.begin - 1, cover.counts.front(),
                    cover.counts.size() > 1 ? &cover.counts[1] : nullptr);
      if (!next)
        break;
      cover.counts.push_front(std::move(*next));
      --cover.begin;
    }
    covers.push_back(std::move(cover));
  }

  /// Those with which the text stands for a rank: on the line of its neighbour
  /// and the one after that, if there is one.
  std::optional<TripCounts> countsFor(const Cover &cover, uint32_t rank,
                                      const TripCounts &last,
                                      const TripCounts *before) const {
    const RankText &text = cover.text, &own = texts[rank];
    if (isFamily()) {
      if (own.shape != text.shape ||
          !std::ranges::equal(own.counts, last, {}, &TripCount::perPeriod,
                              &TripCount::perPeriod))
        return std::nullopt;
      return own.counts;
    }
    if (own.shape.front() != text.shape.front())
      return std::nullopt;
    if (before) {
      TripCounts next = last;
      for (auto [count, other] : llvm::zip(next, *before))
        count.base = std::max<int64_t>(0, 2 * count.base - other.base);
      if (unfold(text, next, lettersOf(rank)) == words[rank])
        return next;
    }
    return own.shape == text.shape ? own.counts : fitted(text, rank);
  }

  /// The letters that a text stands for, unless they are more than `most`.
  std::optional<Phases> unfold(const RankText &text, const TripCounts &counts,
                               size_t limit) const {
    Phases result;
    const TripCount *count = counts.data();
    for (const RankPhase &phase : text.phases) {
      std::vector<uint32_t> letters;
      if (!unfold(phase.items, count, letters, limit))
        return std::nullopt;
      if (!letters.empty())
        result.push_back({phase.name, std::move(letters)});
    }
    return result;
  }
  bool unfold(const BodyTable::List &list, const TripCount *&count,
              std::vector<uint32_t> &letters, size_t limit) const {
    for (BodyTable::Item item : list) {
      size_t begin = letters.size(), base = (count++)->base;
      if (out.bodyTable.isSymbol(item.body))
        letters.push_back(out.bodyTable.symbolOf(item.body));
      else if (!unfold(out.bodyTable.listOf(item.body), count, letters, limit))
        return false;
      size_t length = letters.size() - begin;
      if (length != 0 && (begin > limit || base > (limit - begin) / length))
        return false;
      letters.resize(begin + length * base);
      for (size_t i = begin + length; i < letters.size(); ++i)
        letters[i] = letters[i - length];
    }
    return true;
  }

  /// The text with other counts, maybe 0, of its outer loops, so that it stands
  /// for a rank.
  std::optional<TripCounts> fitted(const RankText &text, uint32_t rank) const {
    auto given = words[rank].begin();
    TripCounts counts = text.counts;
    size_t next = 0;
    for (const RankPhase &phase : text.phases) {
      ArrayRef<uint32_t> letters;
      if (given != words[rank].end() && given->first == phase.name)
        letters = (given++)->second;
      if (!fit(phase.items, letters, counts, next))
        return std::nullopt;
    }
    if (given != words[rank].end())
      return std::nullopt;
    return counts;
  }
  bool fit(const BodyTable::List &items, ArrayRef<uint32_t> letters,
           TripCounts &counts, size_t &next) const {
    // What is in a loop around all.
    if (items.size() == 1 && !out.bodyTable.isSymbol(items[0].body)) {
      size_t base = counts[next].base, part = letters.size() / base;
      if (base > 1 && part * base == letters.size() &&
          letters.drop_front(part) == letters.drop_back(part))
        return fit(out.bodyTable.listOf(items[0].body),
                   letters.take_front(part), counts, ++next);
    }
    std::vector<std::vector<uint32_t>> loops;
    std::vector<size_t> places;
    for (BodyTable::Item item : items) {
      places.push_back(next++);
      std::vector<uint32_t> &loop = loops.emplace_back();
      if (out.bodyTable.isSymbol(item.body)) {
        loop.push_back(out.bodyTable.symbolOf(item.body));
        continue;
      }
      const TripCount *count = &counts[next];
      unfold(out.bodyTable.listOf(item.body), count, loop, SIZE_MAX);
      next = count - counts.data();
    }
    if (!out.bodyTable.spend(loops.size() * letters.size()))
      return false;
    auto fittedCounts = tripCountsOf(loops, letters);
    if (!fittedCounts)
      return false;
    for (auto [place, value] : llvm::zip(places, *fittedCounts))
      counts[place].base = value;
    return true;
  }

  std::string index() const {
    return stride == 1 ? variable.str()
                       : fmt::format("({} / {})", variable, stride);
  }
  std::vector<int64_t> column(const Cover &cover, uint32_t begin, uint32_t end,
                              size_t which) const {
    std::vector<int64_t> values;
    for (uint32_t rank = begin; rank != end; ++rank)
      values.push_back(cover.of(rank)[which].base);
    return values;
  }

  /// How far all counts are on lines.
  uint32_t lineEnd(const Cover &cover, uint32_t begin) const {
    uint32_t end = cover.end();
    for (size_t which = 0; which != cover.text.counts.size(); ++which) {
      auto values = column(cover, begin, end, which);
      for (; !lineOf(values, begin); values.pop_back())
        --end;
    }
    return end;
  }
  std::optional<std::string> lineOf(ArrayRef<int64_t> values,
                                    uint32_t begin) const {
    return isFamily() ? affineExpr(values, begin, index())
                      : affineTripCount(values, begin, index());
  }

  std::string countOf(const Cover &cover, uint32_t begin, uint32_t end,
                      size_t which) const {
    auto values = column(cover, begin, end, which);
    int64_t perPeriod = cover.of(begin)[which].perPeriod;
    if (!isFamily()) {
      auto simple = lineOf(values, begin);
      return simple ? *simple : piecewiseExprOrList(values, index(), begin);
    }
    std::string rest = *affineExpr(values, begin, index());
    if (perPeriod == 0)
      return rest;
    std::string term =
        perPeriod == 1 ? periods : fmt::format("{} * {}", perPeriod, periods);
    StringRef tail = rest;
    if (tail == "0")
      return term;
    bool isLess = tail.consume_front("-");
    return fmt::format("{} {} {}", term, isLess ? "-" : "+", tail.str());
  }

  void writePiece(const Cover &cover, uint32_t begin, uint32_t end) {
    if (begin == 0 && end == texts.size())
      return writeLoops(cover, begin, end);
    bool isOne = end - begin == 1;
    std::string condition =
        end == texts.size() ? "else"
        : isOne ? fmt::format("if {} == {}", variable, rankOf(begin))
                : fmt::format("if {} < {}", variable, rankOf(end));
    if (begin != 0 && end != texts.size())
      condition = "else " + condition;
    out.block(condition, [&] { writeLoops(cover, begin, end); });
  }

  void writeLoops(const Cover &cover, uint32_t begin, uint32_t end) {
    size_t next = 0;
    auto count = [&] { return countOf(cover, begin, end, next++); };
    auto action = [&](uint32_t symbol) {
      return statement(symbol, rankOf(begin));
    };
    for (const RankPhase &phase : cover.text.phases) {
      out.writePhase(phase.name,
                     [&] { writeList(phase.items, count, action); });
    }
  }

  /// Gives one count after another.
  using NextCount = function_ref<std::string()>;
  /// Gives the statement of a letter on the ranks that are written.
  using Action = function_ref<std::string(uint32_t symbol)>;

  void writeList(const BodyTable::List &list, NextCount count, Action action) {
    constexpr size_t width = 90;
    std::string row;
    auto flush = [&] {
      if (!row.empty())
        out.line(row);
      row.clear();
    };
    for (BodyTable::Item item : list) {
      std::string times = count();
      if (!out.bodyTable.isSymbol(item.body) && !fitsLine(item.body)) {
        flush();
        out.open("repeat " + times);
        writeList(out.bodyTable.listOf(item.body), count, action);
        out.close();
        continue;
      }
      std::string inner = oneLine(item.body, count, action);
      if (times == "0")
        continue;
      inner = repeated(times, inner);
      if (row.size() + inner.size() > width)
        flush();
      row += (row.empty() ? "" : " ") + inner;
      if (times != "1")
        flush();
    }
    flush();
  }

  static std::string repeated(const std::string &times,
                              const std::string &inner) {
    return times == "1" ? inner
                        : fmt::format("repeat {} {{ {} }}", times, inner);
  }

  /// A short list without long loops.
  bool fitsLine(uint32_t body) const {
    if (out.bodyTable.isSymbol(body))
      return true;
    const BodyTable::List &list = out.bodyTable.listOf(body);
    return list.size() <= 12 && llvm::all_of(list, [&](BodyTable::Item item) {
             return out.bodyTable.isSymbol(item.body);
           });
  }

  std::string oneLine(uint32_t body, NextCount count, Action action) {
    if (out.bodyTable.isSymbol(body))
      return action(out.bodyTable.symbolOf(body));
    std::string row;
    for (BodyTable::Item item : out.bodyTable.listOf(body)) {
      std::string times = count();
      row += (row.empty() ? "" : " ") +
             repeated(times, action(out.bodyTable.symbolOf(item.body)));
    }
    return row;
  }

  ScheduleText &out;
  std::vector<RankText> texts;
  uint32_t first, stride; ///< Which ranks these are.
  std::string periods;    ///< What stands for M / period.
  ScheduleText::Statement statement;
  StringRef variable;
  std::vector<Phases> words;
  std::vector<Cover> covers;
};

} // namespace

void ScheduleText::writeRanks(ArrayRef<RankText> ranks,
                              const std::string &periods, Statement statement,
                              StringRef variable) {
  auto rows = [&](std::vector<RankText> texts, uint32_t from, uint32_t stride) {
    RankGroups(*this, std::move(texts), from, stride, periods, statement,
               variable)
        .write();
  };
  auto all = [&](const std::vector<RankText> &texts) {
    auto apart = [&](uint32_t by) {
      for (uint32_t rest = 0; rest != by; ++rest) {
        std::vector<RankText> some;
        for (size_t rank = rest; rank < texts.size(); rank += by)
          some.push_back(texts[rank]);
        std::string condition = fmt::format(
            "{}if {} % {} == {}", rest == 0 ? "" : "else ", variable, by, rest);
        block(rest + 1 == by ? "else" : condition,
              [&] { rows(std::move(some), rest, by); });
      }
    };
    std::vector<std::function<void()>> ways = {[&] { rows(texts, 0, 1); }};
    for (uint32_t by : {2, 3})
      if (periods.empty() && texts.size() >= 3 * by)
        ways.push_back([&, by] { apart(by); });
    shortest(ways);
  };
  std::vector<std::function<void()>> ways = {[&] { all(ranks.vec()); }};
  // The phases of the rank that has most of them.
  const RankText &longest =
      *llvm::max_element(ranks, [](const RankText &a, const RankText &b) {
        return a.phases.size() < b.phases.size();
      });
  std::set<StringRef> names;
  for (const RankPhase &phase : longest.phases)
    names.insert(phase.name);
  bool hasEachOnce = names.size() == longest.phases.size();
  auto isInOrder = [&](const RankText &rank) {
    auto next = longest.phases.begin();
    return llvm::all_of(rank.phases, [&](const RankPhase &phase) {
      while (next != longest.phases.end() && next->name != phase.name)
        ++next;
      return next != longest.phases.end() && next++->name == phase.name;
    });
  };
  if (periods.empty() && longest.phases.size() > 1 && hasEachOnce &&
      llvm::all_of(ranks, isInOrder))
    ways.push_back([&] {
      for (const RankPhase &phase : longest.phases) {
        std::vector<RankText> parts;
        for (const RankText &rank : ranks) {
          RankText &part = parts.emplace_back();
          part.shape.push_back(rank.shape.front());
          for (const RankPhase &own : rank.phases)
            if (own.name == phase.name) {
              part.phases.push_back({"", own.items});
              shapeOf(own.items, part.shape, part.counts);
            }
        }
        writePhase(phase.name, [&] { all(parts); });
      }
    });
  shortest(ways);
}
