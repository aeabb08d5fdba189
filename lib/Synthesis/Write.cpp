// Writes an order as a schedule.
#include "ppcc/Synthesis/Write.h"

#include "ppcc/Basic/Diagnostics.h" // Formats StringRef, in all files alike.
#include "ppcc/Decompile/ScheduleText.h"

using namespace ppcc;
using namespace ppcc::synthesis;
using namespace ppcc::written;

using enum Workload::Part;

namespace {

class ScheduleWriter {
public:
  ScheduleWriter(const Program &program, const Problem &problem,
                 const WrittenHead &head)
      : problem(problem), text(program, head) {}

  std::string write(const Order &order) {
    text.writeHead("");
    std::vector<RankText> ranks;
    for (const Word &word : order)
      ranks.push_back(textOf(word));
    text.blank();
    text.open("on rank r");
    text.writeRanks(ranks, "", statement());
    text.close();
    text.close();
    return text.take();
  }

  std::optional<WrittenFamily> write(ArrayRef<Growth> growths, int64_t least) {
    int64_t period = growths.size();
    std::vector<std::vector<RankText>> remainders;
    for (const Growth &growth : growths) {
      remainders.emplace_back();
      if (!growth.problem)
        continue;
      for (auto [word, longer] : llvm::zip(growth.order, growth.longer)) {
        auto grown = textOf(word, longer, growth.microbatches / period);
        if (!grown)
          return std::nullopt;
        for (Count count : grown->counts)
          if (count.more > 0) // Never less than no turns.
            least = std::max(
                least, period * ((count.more - 1 - count.turns) / count.more) -
                           period + 1 + growth.microbatches % period);
        remainders.back().push_back(std::move(*grown));
      }
    }
    for (auto [rest, ranks] : llvm::enumerate(remainders))
      for (auto [rank, grown] : llvm::enumerate(ranks))
        // At each place a rank holds what is a line over n: the most of these
        // is no more in between than at the ends.
        for (int64_t n : {(least - int64_t(rest) + period - 1) / period,
                          int64_t(1'000'000'000)})
          if (peakOf(grown, rank, n) > problem.room[rank])
            return std::nullopt;
    text.writeHead(fmt::format("M: int >= {}", least));
    if (period > 1)
      text.line(fmt::format("let n = M / {};", period));
    text.blank();
    text.open("on rank r");
    size_t left = llvm::count_if(
        growths, [](const Growth &growth) { return growth.problem; });
    bool isOnly = left == 1, isFirst = true;
    for (int64_t rest = 0; rest != period; ++rest) {
      if (!growths[rest].problem)
        continue;
      if (!isOnly)
        text.open(--left == 0
                      ? std::string("else")
                      : fmt::format("{}if M % {} == {}", isFirst ? "" : "else ",
                                    period, rest));
      isFirst = false;
      text.writeRanks(remainders[rest], period > 1 ? "n" : "M", statement());
      if (!isOnly)
        text.close();
    }
    text.close();
    text.close();
    return WrittenFamily{text.take(), least};
  }

private:
  /// A letter is the chunk and the part of an action.
  uint32_t letterOf(Op op) const {
    const auto &stages = problem.load.ofRank[problem.rank[op]];
    return opOf(llvm::find(stages, stageOf(op)) - stages.begin(), partOf(op));
  }

  RankText textOf(const Word &word) {
    auto isForward = [](Op op) { return partOf(op) == F; };
    size_t firstBack = llvm::find_if_not(word, isForward) - word.begin();
    size_t lastForward = word.size();
    while (lastForward != 0 && !isForward(word[lastForward - 1]))
      --lastForward;
    lastForward = std::max(lastForward, firstBack);
    std::vector<uint32_t> letters;
    for (Op op : word)
      letters.push_back(letterOf(op));
    return text.textOf(inPhases(letters, firstBack, lastForward),
                       word.empty() || hasOneStage(problem.rank[word.front()]));
  }
  bool hasOneStage(uint32_t rank) const {
    return problem.load.ofRank[rank].size() == 1;
  }

  /// That of a word which stands for M / period = n, and of one for n + 1.
  std::optional<RankText> textOf(const Word &word, const Word &longer,
                                 int64_t n) {
    RankText rank = textOf(word), other = textOf(longer);
    if (rank.shape != other.shape)
      return std::nullopt;
    for (auto [count, one] : llvm::zip(rank.counts, other.counts)) {
      count.more = one.turns - count.turns;
      if (count.more < 0)
        return std::nullopt;
      count.turns -= count.more * n;
    }
    return rank;
  }

  /// What a list adds to what a rank holds, and the most that it holds more
  /// meanwhile.
  struct Held {
    decimal::Sum net = 0, most = 0;
  };
  Held heldBy(const Bodies::List &list, const uint32_t *stages, int64_t n,
              const Count *&count) const {
    Held all;
    for (Bodies::Item item : list) {
      decimal::Sum times = count->turns + decimal::Sum(count->more) * n;
      ++count;
      Held one;
      if (text.bodies.isLetter(item.body)) {
        uint32_t letter = text.bodies.letterOf(item.body);
        Op op = opOf(stages[stageOf(letter)], partOf(letter));
        one = {decimal::Sum(problem.takes[op]) - problem.gives[op],
               problem.takes[op]};
      } else {
        one = heldBy(text.bodies.listOf(item.body), stages, n, count);
      }
      if (times > 0)
        all.most = std::max(all.most, all.net + one.most +
                                          std::max<decimal::Sum>(one.net, 0) *
                                              (times - 1));
      all.net += one.net * times;
    }
    return all;
  }

  decimal::Sum peakOf(const RankText &rank, uint32_t number, int64_t n) const {
    Held all;
    const Count *count = rank.counts.data();
    for (const RankPhase &phase : rank.phases) {
      Held one =
          heldBy(phase.items, problem.load.ofRank[number].data(), n, count);
      all.most = std::max(all.most, all.net + one.most);
      all.net += one.net;
    }
    return all.most;
  }

  std::function<std::string(uint32_t, uint32_t)> statement() const {
    return [this](uint32_t letter, uint32_t rank) {
      bool isFused = problem.load.backward == Workload::Backward::Fused;
      StringRef name = isFused && partOf(letter) != F
                           ? "B"
                           : StringRef("FIW").substr(partOf(letter), 1);
      return hasOneStage(rank) ? name.str() + ";"
                               : fmt::format("{}({});", name, stageOf(letter));
    };
  }

  const Problem &problem;
  ScheduleText text;
};

/// An end of a pipe's microbatches in M, if it is a line.
std::optional<std::string> lineOf(ArrayRef<Growth> growths, size_t pipe,
                                  int64_t Range::*end) {
  std::optional<int64_t> step, shift;
  int64_t period = growths.size();
  for (const Growth &growth : growths) {
    if (!growth.problem)
      continue;
    int64_t at = growth.pipes[pipe].*end,
            by = growth.longerPipes[pipe].*end - at,
            more = at - growth.microbatches * by / period;
    if (by != step.value_or(by) || more != shift.value_or(more))
      return std::nullopt;
    step = by;
    shift = more;
  }
  int64_t common = std::gcd(*step, period), by = *step / common;
  std::string line = by == 0 ? "" : by == 1 ? "M" : fmt::format("M * {}", by);
  if (by != 0 && period != common)
    line += fmt::format(" / {}", period / common);
  if (line.empty())
    return std::to_string(*shift);
  return *shift == 0  ? line
         : *shift > 0 ? fmt::format("{} + {}", line, *shift)
                      : fmt::format("{} - {}", line, -*shift);
}

} // namespace

std::string synthesis::write(const Program &program, const Problem &problem,
                             const Order &order, const WrittenHead &head) {
  return ScheduleWriter(program, problem, head).write(order);
}

std::optional<WrittenFamily> synthesis::writeFamily(const Program &program,
                                                    ArrayRef<Growth> growths,
                                                    const WrittenHead &head,
                                                    int64_t least) {
  auto first = llvm::find_if(
      growths, [](const Growth &growth) { return growth.problem; });
  WrittenHead family = head;
  for (size_t pipe = 0; pipe != first->pipes.size(); ++pipe) {
    auto begin = lineOf(growths, pipe, &Range::begin),
         end = lineOf(growths, pipe, &Range::end);
    if (!begin || !end)
      return std::nullopt;
    family.microbatches.push_back(*begin == "0" ? *end
                                                : *begin + " .. " + *end);
  }
  std::vector<std::string> remainders;
  for (auto [rest, growth] : llvm::enumerate(growths))
    if (growth.problem)
      remainders.push_back(fmt::format("M % {} == {}", growths.size(), rest));
  if (remainders.size() != growths.size())
    family.conditions.push_back(
        fmt::format("require {}, \"the placement is of such M only\";",
                    llvm::join(remainders, " or ")));
  return ScheduleWriter(program, *first->problem, family).write(growths, least);
}
