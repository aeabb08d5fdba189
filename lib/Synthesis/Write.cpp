// Writes an order as a schedule.
#include "ppcc/Synthesis/Write.h"

#include "ppcc/Basic/Diagnostics.h" // Formats StringRef, in all files alike.
#include "ppcc/Decompile/ScheduleText.h"

using namespace ppcc;
using namespace ppcc::synthesis;
using namespace ppcc::schedtext;

using enum Workload::Part;

namespace {

/// The places of a rank's first gradient, and after its last forward.
std::pair<size_t, size_t> steadyOf(const OpSequence &sequence) {
  auto isForward = [](Op op) { return partOf(op) == F; };
  size_t begin = llvm::find_if_not(sequence, isForward) - sequence.begin();
  size_t end = sequence.size();
  while (end > begin && !isForward(sequence[end - 1]))
    --end;
  return {begin, end};
}

struct ScheduleWriter {
  const Problem &problem;
  ScheduleText text;

  std::string write(const Order *order) {
    text.writeHead("");
    text.blank();
    text.open("on rank r");
    if (order) {
      std::vector<RankText> ranks;
      for (const OpSequence &sequence : *order)
        ranks.push_back(textOf(sequence));
      text.writeRanks(ranks, "", statement());
    } else {
      for (StringRef phase : {"warmup", "steady", "cooldown"})
        text.line(fmt::format("phase {} {{ }}", phase));
    }
    text.close();
    text.close();
    return text.take();
  }

  std::optional<WrittenFamily> write(ArrayRef<OrderExtension> extensions,
                                     int64_t minMicrobatches) {
    int64_t period = extensions.size();
    std::vector<std::vector<RankText>> remainders;
    for (const OrderExtension &growth : extensions) {
      remainders.emplace_back();
      if (!growth.problem)
        continue;
      for (auto [sequence, longer] : llvm::zip(growth.order, growth.longer)) {
        auto grown = textOf(sequence, longer, growth.microbatches / period);
        if (!grown)
          return std::nullopt;
        for (TripCount count : grown->counts)
          if (count.perPeriod > 0) // Never less than no turns.
            minMicrobatches = std::max(
                minMicrobatches, period * ((count.perPeriod - 1 - count.base) /
                                           count.perPeriod) -
                                     period + 1 + growth.microbatches % period);
        remainders.back().push_back(std::move(*grown));
      }
    }
    for (auto [rest, ranks] : llvm::enumerate(remainders))
      for (auto [rank, grown] : llvm::enumerate(ranks))
        // At each place a rank holds what is a line over n: the most of these
        // is no more in between than at the ends.
        for (int64_t n :
             {(minMicrobatches - int64_t(rest) + period - 1) / period,
              int64_t(1'000'000'000)})
          if (peakOf(grown, rank, n) > problem.memoryBudget[rank])
            return std::nullopt;
    text.writeHead(fmt::format("M: int >= {}", minMicrobatches));
    if (period > 1)
      text.line(fmt::format("let n = M / {};", period));
    text.blank();
    text.open("on rank r");
    size_t left = llvm::count_if(extensions, [](const OrderExtension &growth) {
      return growth.problem;
    });
    bool isOnly = left == 1, isFirst = true;
    for (int64_t rest = 0; rest != period; ++rest) {
      if (!extensions[rest].problem)
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
    return WrittenFamily{text.take(), minMicrobatches};
  }

  /// A letter is the chunk and the part of an action.
  uint32_t symbolOf(Op op) const {
    const auto &stages = problem.load.ofRank[problem.rank[op]];
    return opOf(llvm::find(stages, stageOf(op)) - stages.begin(), partOf(op));
  }

  RankText textOf(const OpSequence &sequence) {
    auto [firstBack, lastForward] = steadyOf(sequence);
    std::vector<uint32_t> letters;
    for (Op op : sequence)
      letters.push_back(symbolOf(op));
    return text.textOf(splitIntoPhases(letters, firstBack, lastForward),
                       sequence.empty() ||
                           hasOneStage(problem.rank[sequence.front()]));
  }
  bool hasOneStage(uint32_t rank) const {
    return problem.load.ofRank[rank].size() == 1;
  }

  /// That of a word which stands for M / period = n, and of one for n + 1.
  std::optional<RankText> textOf(const OpSequence &sequence,
                                 const OpSequence &longer, int64_t n) {
    RankText rank = textOf(sequence), other = textOf(longer);
    if (rank.shape != other.shape)
      return std::nullopt;
    for (auto [count, one] : llvm::zip(rank.counts, other.counts)) {
      count.perPeriod = one.base - count.base;
      if (count.perPeriod < 0)
        return std::nullopt;
      count.base -= count.perPeriod * n;
    }
    return rank;
  }

  /// What a list adds to what a rank holds, and the most that it holds more
  /// meanwhile.
  struct Held {
    decimal::Sum net = 0, peak = 0;
  };
  Held stashedBy(const BodyTable::List &list, const uint32_t *stages, int64_t n,
                 const TripCount *&count) const {
    Held all;
    for (BodyTable::Item item : list) {
      decimal::Sum times = count->base + decimal::Sum(count->perPeriod) * n;
      ++count;
      Held one;
      if (text.bodyTable.isSymbol(item.body)) {
        uint32_t symbol = text.bodyTable.symbolOf(item.body);
        Op op = opOf(stages[stageOf(symbol)], partOf(symbol));
        one = {decimal::Sum(problem.allocates[op]) - problem.frees[op],
               problem.allocates[op]};
      } else {
        one = stashedBy(text.bodyTable.listOf(item.body), stages, n, count);
      }
      if (times > 0)
        all.peak = std::max(all.peak, all.net + one.peak +
                                          std::max<decimal::Sum>(one.net, 0) *
                                              (times - 1));
      all.net += one.net * times;
    }
    return all;
  }

  decimal::Sum peakOf(const RankText &rank, uint32_t number, int64_t n) const {
    Held all;
    const TripCount *count = rank.counts.data();
    for (const RankPhase &phase : rank.phases) {
      Held one =
          stashedBy(phase.items, problem.load.ofRank[number].data(), n, count);
      all.peak = std::max(all.peak, all.net + one.peak);
      all.net += one.net;
    }
    return all.peak;
  }

  std::function<std::string(uint32_t, uint32_t)> statement() const {
    return [this](uint32_t symbol, uint32_t rank) {
      bool isFused = problem.load.backward == Workload::Backward::Fused;
      StringRef name = isFused && partOf(symbol) != F
                           ? "B"
                           : StringRef("FIW").substr(partOf(symbol), 1);
      return hasOneStage(rank) ? name.str() + ";"
                               : fmt::format("{}({});", name, stageOf(symbol));
    };
  }
};

/// An end of a pipe's microbatches in M, if it is a line.
std::optional<std::string> lineOf(ArrayRef<OrderExtension> extensions,
                                  size_t pipe, int64_t MicrobatchRange::*end) {
  std::optional<int64_t> step, shift;
  int64_t period = extensions.size();
  for (const OrderExtension &growth : extensions) {
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
                             const ScheduleHeader &head, const Order *order,
                             uint64_t steps) {
  ScheduleWriter writer{problem, {program, head}};
  writer.text.bodyTable.limit(steps);
  return writer.write(order);
}

Rows synthesis::rowsOf(const Program &program, const Problem &problem,
                       const Order &order) {
  bool isFused = problem.load.backward == Workload::Backward::Fused;
  uint32_t kinds[] = {kind::Forward,
                      isFused ? kind::Backward : kind::BackwardInput,
                      kind::BackwardWeight};
  std::vector<uint32_t> next(problem.numOps());
  Rows rows;
  rows.reserve(problem.numActions);
  for (const OpSequence &sequence : order) {
    rows.beginRank();
    auto [firstBack, lastForward] = steadyOf(sequence);
    for (auto [place, op] : llvm::enumerate(sequence)) {
      const Workload::Stage &stage = problem.load.stages[stageOf(op)];
      rows.append(
          {.kind = KindId(kinds[partOf(op)]),
           .pipe = stage.pipe,
           .stage = stage.stage,
           .microbatch = program.pipe(stage.pipe).firstMicrobatch + next[op]++,
           .phase =
               PhaseId(1 + (place >= firstBack) + (place >= lastForward))});
    }
  }
  return rows;
}

std::optional<WrittenFamily>
synthesis::writeFamily(const Program &program,
                       ArrayRef<OrderExtension> extensions,
                       const ScheduleHeader &head, int64_t minMicrobatches) {
  auto first = llvm::find_if(
      extensions, [](const OrderExtension &growth) { return growth.problem; });
  ScheduleHeader family = head;
  for (size_t pipe = 0; pipe != first->pipes.size(); ++pipe) {
    auto begin = lineOf(extensions, pipe, &MicrobatchRange::begin),
         end = lineOf(extensions, pipe, &MicrobatchRange::end);
    if (!begin || !end)
      return std::nullopt;
    family.microbatches.push_back(*begin == "0" ? *end
                                                : *begin + " .. " + *end);
  }
  std::vector<std::string> remainders;
  for (auto [rest, growth] : llvm::enumerate(extensions))
    if (growth.problem)
      remainders.push_back(
          fmt::format("M % {} == {}", extensions.size(), rest));
  if (remainders.size() != extensions.size())
    family.conditions.push_back(
        fmt::format("require {}, \"the placement is of such M only\";",
                    llvm::join(remainders, " or ")));
  return ScheduleWriter{*first->problem, {program, family}}.write(
      extensions, minMicrobatches);
}
