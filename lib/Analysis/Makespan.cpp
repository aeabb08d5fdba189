// How long a program takes.
#include "ppcc/Analysis/Makespan.h"

#include "ppcc/Analysis/Dependences.h"

using namespace ppcc;

namespace {

/// Compute queues that hand their results on at once.
class DataRun {
public:
  DataRun(Inboxes &inboxes, const Durations &durations,
          std::vector<Time> *starts)
      : program(inboxes.program), durations(durations), inboxes(inboxes),
        free(program.ranksBegun()), starts(starts) {
    if (starts)
      starts->assign(program.size(), 0);
  }

  std::optional<Time> run() {
    for (RankId rank : program.ranks()) {
      work.push_back(rank);
      while (!work.empty())
        runRank(work.pop_back_val());
    }
    Time makespan = 0;
    for (RankId rank : program.ranks()) {
      if (!inboxes.done(rank))
        return std::nullopt;
      makespan = std::max(makespan, free[rank.value]);
    }
    return makespan;
  }

private:
  void runRank(RankId rank) {
    while (inboxes.isReady(rank)) {
      Time &end = free[rank.value];
      ActionId first = inboxes.begin(rank), last = inboxes.end(rank);
      Time start = std::max(end, inboxes.readyAt(rank));
      end = start + durations.of(program, first, last);
      inboxes.advance(rank);
      for (ActionId row : RowRange{first, last}) {
        if (starts)
          (*starts)[row.value] = start;
        Action action = program[row];
        noteSlacks(action, start);
        handOn(rank, action, end);
      }
    }
  }

  void noteSlacks(const Action &action, Time start) {
    for (uint8_t slotBit :
         slotsIn(program.kindOf(action).defines & slot::moving)) {
      size_t input = inboxes.inputOf(action.pipe, action.stage,
                                     action.microbatch, slotBit);
      inboxes.slackOf(input) = start - inboxes.lastOf(input);
    }
  }

  void handOn(RankId rank, const Action &action, Time end) {
    forEachReader(
        program, inboxes.index, action,
        [&](uint8_t slotBit, StageId reader, RankId to) {
          Time way = to == rank ? 0
                                : durations.ofEdge(action.pipe, action.stage,
                                                   reader, action.microbatch);
          if (inboxes.deliver(inboxes.inputOf(action.pipe, reader,
                                              action.microbatch, slotBit),
                              to, end + way))
            work.push_back(to);
        });
  }

  const Program &program;
  const Durations &durations;
  Inboxes &inboxes;
  std::vector<Time> free; ///< Of each rank, the end of what it ran last.
  std::vector<Time> *starts;
  SmallVector<RankId> work;
};

} // namespace

std::optional<Time> ppcc::dataBound(Inboxes &inboxes,
                                    const Durations &durations,
                                    std::vector<Time> *starts) {
  return DataRun(inboxes, durations, starts).run();
}
