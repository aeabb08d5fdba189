// Fits affine functions c + a n + b j to the values that rows of a template,
// in iterations j, have in its programs of n = 1 and n = 2. It also inserts
// messages into templates, peels loops, and lifts cycles of a program.
//
// Algorithm: affine interpolation, the guess of guess-and-check. The values at
// (n, j) = (1, 0), (2, 0) and (1, 1) determine c, a and b. All other values of
// the two programs must lie on the function; otherwise there is no fit.
// Invariant: nothing fitted is trusted. proof::Checker checks times, orders
// and cycles; isPlacementStable checks the places of messages.
// Cost: a row has at most five values (a loop runs n + 1 times), so a fit is
// linear in the rows of both programs.
// Example: a row outside loops starts at 3 for n = 1 and at 5 for n = 2:
//   a = 5 - 3 and c = 3 - a, so it starts at 1 + 2 n.
//   A row in a loop starts at 4, 6 for n = 1 and at 4, 6, 8 for n = 2: 4 + 2 j.
//   With 4, 6, 9 for n = 2 there is no fit.
#include "Fit.h"

#include "ppcc/Analysis/Run/EventGraph.h"
#include "ppcc/Analysis/Run/EventRun.h"
#include "ppcc/Proof/Instance.h"

using namespace ppcc;
using proof::Affine;
using proof::forEachRow;
using proof::Template;

/// What rows of a template have in common with the actions that they are.
static auto staticFieldsOf(const auto &row) {
  return std::tuple(row.kind, row.pipe, row.stage, row.peer, row.joined);
}
static proof::Row asRow(const Action &action, uint32_t loop,
                        Affine microbatch) {
  return {action.kind,   action.pipe, action.stage, action.peer,
          action.joined, loop,        microbatch,   0,
          action.phase,  action.site};
}

std::vector<Origin> ppcc::originsOf(const Template &program, int64_t n) {
  std::vector<Origin> origins;
  for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
    forEachRow(program.ranks[rank], n, [&](uint32_t row, int64_t iteration) {
      origins.push_back({rank, row, iteration});
    });
  return origins;
}

bool ppcc::isInstance(const Template &family, int64_t n,
                      const Program &program) {
  std::vector<Origin> origins = originsOf(family, n);
  if (origins.size() != program.size())
    return false;
  return llvm::all_of(llvm::enumerate(origins), [&](const auto &at) {
    auto [i, origin] = at;
    ActionId row(i);
    const proof::Row &wanted = family.ranks[origin.rank][origin.row];
    return program.rankOf(row).value == origin.rank &&
           staticFieldsOf(wanted) == staticFieldsOf(program[row]) &&
           wanted.microbatch.at(n, origin.iteration) == program[row].microbatch;
  });
}

bool ppcc::isPlacedWithMessages(const KindInfo &info, const KindTable &kinds) {
  return !info.isCompute() ||
         llvm::any_of(info.rules, [&](const KindRule &rule) {
           return !rule.isBefore && llvm::any_of(rule.kinds, [&](KindId kind) {
             return !kinds[kind].isCompute();
           });
         });
}

namespace {

/// Values of an instance at a row of the template.
struct Point {
  int64_t n, iteration, value;
};

/// The function through all points, of n = 1 and 2 with all their iterations,
/// or of n = 0 alone.
std::optional<Affine> interpolate(ArrayRef<Point> points, bool hasIterations) {
  auto at = [&](int64_t n, int64_t iteration) {
    for (const Point &point : points)
      if (point.n == n && point.iteration == iteration)
        return point.value;
    return int64_t(0);
  };
  Affine f;
  f.n = at(2, 0) - at(1, 0);
  f.j = hasIterations ? at(1, 1) - at(1, 0) : 0;
  f.c = at(1, 0) - f.n;
  if (points.front().n == 0)
    f.c = points.front().value;
  for (const Point &point : points)
    if (f.at(point.n, point.iteration) != point.value)
      return std::nullopt;
  return f;
}

class MessageInserter {
public:
  MessageInserter(Template family, const Program &first, const Program &second)
      : family(std::move(family)) {
    for (auto &rows : this->family.ranks)
      llvm::erase_if(rows, [&](const proof::Row &row) {
        return isPlacedWithMessages(first.kinds()[row.kind], first.kinds());
      });
    collect(1, first);
    collect(2, second);
  }

  std::optional<Template> insert() const {
    Template result = family;
    for (uint32_t rank = 0; rank != family.ranks.size(); ++rank) {
      auto &rows = result.ranks[rank];
      rows.clear();
      if (!append(rank, 0, proof::noLoop, rows))
        return std::nullopt;
      for (uint32_t row = 0; row != family.ranks[rank].size(); ++row) {
        rows.push_back(family.ranks[rank][row]);
        if (!append(rank, row + 1, family.ranks[rank][row].loop, rows))
          return std::nullopt;
      }
    }
    return result;
  }

  mutable bool hasFixedSites = true;

private:
  /// Messages after a row in one iteration.
  struct Gap {
    int64_t n, iteration;
    std::vector<Action> messages;
  };

  void collect(int64_t n, const Program &program) {
    gaps.resize(family.ranks.size());
    for (uint32_t rank = 0; rank != family.ranks.size(); ++rank) {
      const auto &rows = family.ranks[rank];
      gaps[rank].resize(rows.size() + 1);
      ActionId at = program.begin(RankId(rank));
      auto take = [&](uint32_t rowsBefore, int64_t iteration) {
        Gap &gap = gaps[rank][rowsBefore].emplace_back(Gap{n, iteration, {}});
        for (; at != program.end(RankId(rank)) &&
               isPlacedWithMessages(program.kindOf(at), program.kinds());
             ++at.value)
          gap.messages.push_back(program[at]);
      };
      take(0, 0);
      forEachRow(rows, n, [&](uint32_t row, int64_t iteration) {
        ++at.value;
        take(row + 1, iteration);
      });
    }
  }

  bool append(uint32_t rank, uint32_t rowsBefore, uint32_t loop,
              std::vector<proof::Row> &rows) const {
    const std::vector<Gap> &all = gaps[rank][rowsBefore];
    size_t count = all.front().messages.size();
    for (size_t i = 0; i != count; ++i) {
      const Action &first = all.front().messages[i];
      SmallVector<Point> points;
      for (const Gap &gap : all) {
        if (gap.messages.size() != count)
          return false;
        const Action &action = gap.messages[i];
        if (staticFieldsOf(action) != staticFieldsOf(first))
          return false;
        points.push_back({gap.n, gap.iteration, action.microbatch});
        hasFixedSites &=
            action.site == first.site && action.phase == first.phase;
      }
      auto microbatch = interpolate(points, loop != proof::noLoop);
      if (!microbatch)
        return false;
      rows.push_back(asRow(first, loop, *microbatch));
    }
    return llvm::all_of(
        all, [&](const Gap &gap) { return gap.messages.size() == count; });
  }

  Template family;
  /// By rank, and the row in front and 1.
  std::vector<std::vector<std::vector<Gap>>> gaps;
};

/// Gives events numbers: times, and within a moment their order.
class OrderClock : public RowClock {
public:
  OrderClock(const Program &program, const Durations &durations,
             RowTimes &times)
      : RowClock(program, durations, times), completions(program.size()) {}

  void setCompletion(ActionId row, Moment at) {
    // A receive makes room for a send, which ends after it.
    completions[row.value] = at + 2 * program.kindOf(row).isRecv();
  }
  void setEnd(ActionId row, Moment at) {
    times.ends[row.value] = std::max(at, times.starts[row.value] + 1);
  }
  Moment completionOf(ActionId row) const { return completions[row.value]; }
  void wait(Moment &ready, ActionId row, Time delay) const {
    Moment end = times.ends[row.value];
    ready = std::max(ready, delay > 0 ? plus(end, delay) : end + 1);
  }
  Moment freeAfter(Moment, ActionId row) const {
    return times.ends[row.value] + 1;
  }
  static Moment plus(Moment moment, Time time) {
    return time > 0 ? std::min(moment / ticksPerMoment + time,
                               last / ticksPerMoment) *
                          ticksPerMoment
           : time == 0 ? moment + 2
                       : moment + 1;
  }
  using RowClock::time;
  Time time(ActionId begin, ActionId end) const {
    Time time = durations.of(program, begin, end);
    return time > 0 ? time : -1; // A send ends before its message is there.
  }

private:
  static constexpr int64_t ticksPerMoment = 4096; ///< Numbers of a moment.
  /// An order beyond it is of no use, and proves nothing.
  static constexpr Moment last = std::numeric_limits<Moment>::max() / 2;

  std::vector<Moment> completions;
};

} // namespace

std::optional<Template> ppcc::insertMessages(const Template &family,
                                             const Program &first,
                                             const Program &second,
                                             bool &hasFixedSites) {
  MessageInserter messages(family, first, second);
  auto result = messages.insert();
  hasFixedSites = messages.hasFixedSites;
  return result;
}

Template ppcc::peeled(const Template &family) {
  Template result = family;
  if (result.last != proof::unbounded)
    result.last -= 2;
  for (proof::MicrobatchRange &range : result.pipes)
    for (Affine *f : {&range.first, &range.count})
      f->c += 2 * f->n;
  for (uint32_t rank = 0; rank != family.ranks.size(); ++rank) {
    const auto &rows = family.ranks[rank];
    auto &to = result.ranks[rank];
    to.clear();
    for (uint32_t begin = 0, end; begin != rows.size(); begin = end) {
      uint32_t loop = rows[begin].loop;
      end = proof::blockEnd(rows, begin);
      // In iteration 0, in iteration 1 + j, and in the last, n + 2.
      auto add = [&](uint32_t in, Affine iteration) {
        for (size_t i = begin; i != end; ++i) {
          proof::Row row = rows[i];
          Affine at = row.microbatch;
          row.microbatch = Affine{at.c + 2 * at.n, at.n, 0} + at.j * iteration;
          row.loop = in;
          to.push_back(row);
        }
      };
      if (loop == proof::noLoop) {
        add(loop, {});
        continue;
      }
      add(proof::noLoop, {});
      add(loop, {1, 0, 1});
      add(proof::noLoop, {2, 1, 0});
    }
  }
  return result;
}

Sample::Sample(const Program &program, bool hasMessages)
    : program(program), index(program) {
  if (hasMessages)
    messages.emplace(program, index);
}

std::optional<Simulation> Sample::run(const Transport *transport) const {
  Durations durations(program);
  return transport ? simulate(program, index, *messages, durations, *transport)
                   : simulate(program, index, durations);
}

std::optional<Simulation>
Sample::numberEvents(const Transport *transport,
                     const Durations &durations) const {
  RowTimes times;
  EventRun<OrderClock> run(program, index, messages ? &*messages : nullptr,
                           {transport}, OrderClock(program, durations, times));
  if (!run.run() || !run.isWhole())
    return std::nullopt;
  Simulation result;
  result.starts = std::move(times.starts);
  result.ends = std::move(times.ends);
  return result;
}

std::optional<std::vector<std::vector<Affine>>>
ppcc::fitted(const Template &family, ArrayRef<std::vector<int64_t>> numbers) {
  std::vector<std::vector<Affine>> result;
  std::vector<size_t> next(numbers.size());
  for (const auto &rows : family.ranks) {
    auto &ofRank = result.emplace_back(rows.size());
    std::vector<SmallVector<Point, 5>> points(rows.size());
    for (size_t i = 0; i != numbers.size(); ++i) {
      int64_t n = family.last == 0 ? 0 : i + 1;
      forEachRow(rows, n, [&](uint32_t row, int64_t iteration) {
        points[row].push_back({n, iteration, numbers[i][next[i]++]});
      });
    }
    for (uint32_t row = 0; row != rows.size(); ++row) {
      auto f = interpolate(points[row], rows[row].loop != proof::noLoop);
      if (!f)
        return std::nullopt;
      ofRank[row] = *f;
    }
  }
  return result;
}

std::optional<proof::Times>
ppcc::fit(const Template &family, ArrayRef<std::optional<Simulation>> runs) {
  std::vector<std::vector<int64_t>> starts, ends;
  for (const auto &run : runs) {
    if (!run)
      return std::nullopt;
    starts.push_back(run->starts);
    ends.push_back(run->ends);
  }
  auto begin = fitted(family, starts), end = fitted(family, ends);
  if (!begin || !end)
    return std::nullopt;
  proof::Times times;
  for (auto [from, to] : llvm::zip(*begin, *end)) {
    auto &list = times.ranks.emplace_back();
    for (auto [start, stop] : llvm::zip(from, to))
      list.push_back({start, stop});
  }
  return times;
}

Template ppcc::templateOf(const Program &program, const Head &head) {
  Template one;
  one.head = &head;
  one.last = 0;
  for (const Pipe &pipe : program.pipes())
    one.pipes.push_back({pipe.firstMicrobatch, pipe.numMicrobatches});
  for (RankId rank : program.ranks()) {
    auto &rows = one.ranks.emplace_back();
    for (ActionId row : program.rows(rank))
      rows.push_back(
          asRow(program[row], proof::noLoop, program[row].microbatch));
  }
  return one;
}

void ppcc::setSites(Template &family, const Program &first) {
  for (auto [i, origin] : llvm::enumerate(originsOf(family, 1))) {
    proof::Row &row = family.ranks[origin.rank][origin.row];
    row.phase = first[ActionId(i)].phase;
    row.site = first[ActionId(i)].site;
  }
}

std::vector<proof::Event> ppcc::cycleOf(const Template &family, int64_t n,
                                        const Sample &sample,
                                        const Transport *transport,
                                        bool countsFromEnd) {
  const Program &program = sample.program;
  EventGraph graph(program, sample.index,
                   transport ? &*sample.messages : nullptr,
                   {transport, /*inProgramOrder=*/!transport});
  if (graph.run())
    return {};
  std::vector<Origin> origins = originsOf(family, n);
  std::vector<proof::Event> cycle;
  auto add = [&](ActionId row, bool isEnd) {
    const Origin &origin = origins[program.itemOf(row).from.value];
    bool inLoop = family.ranks[origin.rank][origin.row].loop != proof::noLoop;
    cycle.push_back({origin.rank, origin.row, isEnd,
                     !inLoop         ? Affine{}
                     : countsFromEnd ? Affine{origin.iteration - n, 1, 0}
                                     : origin.iteration});
  };
  // Each blocked event waits for one of another row, which stands after the
  // next that is blocked.
  std::vector<EventGraph::BlockedAction> blocks = graph.shortestCycle();
  for (size_t i = 0; i != blocks.size(); ++i) {
    const EventGraph::BlockedAction &block = blocks[i],
                                    &next = blocks[(i + 1) % blocks.size()];
    bool needsEnd = block.need.kind != NeedKind::Start,
         nextIsEnd = graph.hasStarted(next.blocked);
    add(block.blocked, graph.hasStarted(block.blocked));
    bool isNext = program.itemOf(ActionId(block.on)).from ==
                  program.itemOf(block.need.row).from;
    if (!isNext) {
      if (needsEnd)
        add(block.need.row, true);
      add(block.need.row, false);
    }
    if (!nextIsEnd && (needsEnd || !isNext))
      add(ActionId(block.on), true);
  }
  return cycle;
}
