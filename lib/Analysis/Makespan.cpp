// How long a program takes.
#include "ppcc/Analysis/Makespan.h"

#include "ppcc/Analysis/Dependences.h"
#include "ppcc/Analysis/Heads.h"

#include "llvm/ADT/SmallVector.h"

using namespace ppcc;

namespace {

/// Compute queues that hand their results on at once.
class DataRun {
public:
  DataRun(const Program &program, const ProgramIndex &index,
          const Durations &durations, std::vector<Time> *starts,
          std::vector<Time> *slacks)
      : program(program), index(index), durations(durations),
        heads(program, index), free(program.ranksBegun()), starts(starts),
        slacks(slacks) {
    if (starts)
      starts->assign(program.size(), 0);
    if (slacks)
      slacks->assign(heads.numInputs(), 0);
  }

  std::optional<Time> run() {
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
      work.push_back(RankId(rank));
      while (!work.empty())
        runRank(work.pop_back_val());
    }
    Time makespan = 0;
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
      if (!heads.done(RankId(rank)))
        return std::nullopt;
      makespan = std::max(makespan, free[rank]);
    }
    return makespan;
  }

private:
  void runRank(RankId rank) {
    while (auto ready = heads.ready(rank)) {
      Time &end = free[rank.value];
      ActionId first = heads.begin(rank), last = heads.end(rank);
      Time start = std::max(end, *ready);
      end = start + durations.of(program, first, last);
      heads.advance(rank);
      for (ActionId row = first; row != last; ++row.value) {
        if (starts)
          (*starts)[row.value] = start;
        Action action = program[row];
        if (slacks)
          noteSlacks(action, start);
        handOn(rank, action, end);
      }
    }
  }

  void noteSlacks(const Action &action, Time start) {
    for (unsigned rest = program.kinds[action.kind].defines & slot::moving;
         rest; rest &= rest - 1) {
      size_t input = heads.inputOf(action.pipe, action.stage, action.microbatch,
                                   rest & -rest);
      (*slacks)[input] = start - heads.lastOf(input);
    }
  }

  void handOn(RankId rank, const Action &action, Time end) {
    forEachReader(program, index, action,
                  [&](uint8_t slotBit, StageId reader, RankId to) {
                    bool away = to != rank;
                    heads.deliver(action.pipe, reader, action.microbatch,
                                  slotBit,
                                  end + (away ? durations.latency : 0));
                    if (away)
                      work.push_back(to);
                  });
  }

  const Program &program;
  const ProgramIndex &index;
  const Durations &durations;
  Heads heads;
  std::vector<Time> free; ///< Of each rank, the end of what it ran last.
  std::vector<Time> *starts, *slacks;
  llvm::SmallVector<RankId> work;
};

/// A compute queue and a stream of messages a rank.
class StreamRun {
public:
  StreamRun(const Program &program, const ProgramIndex &index,
            const Durations &durations, std::vector<Time> &ends)
      : program(program), index(index), durations(durations),
        heads(program, index), ranks(program.ranksBegun()), ends(ends) {
    ends.assign(program.size(), 0);
  }

  std::optional<Time> run() {
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank)
      ranks[rank].message =
          nextMessage(RankId(rank), program.begin(RankId(rank)));
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
      work.push_back(RankId(rank));
      while (!work.empty())
        runRank(work.pop_back_val());
    }
    Time makespan = 0;
    for (uint32_t i = 0; i != program.ranksBegun(); ++i) {
      RankId rank(i);
      if (!heads.done(rank) || ranks[i].message != program.end(rank))
        return std::nullopt;
      makespan =
          std::max({makespan, ranks[i].computeFree, ranks[i].streamFree});
    }
    return makespan;
  }

private:
  struct Rank {
    Time computeFree = 0, streamFree = 0;
    ActionId message; ///< The next send or receive.
  };

  /// The first message from `row` on.
  ActionId nextMessage(RankId rank, ActionId row) {
    while (row != program.end(rank) && program.kindOf(row).isCompute())
      ++row.value;
    return row;
  }

  void runRank(RankId rank) {
    for (bool moved = true; moved;) {
      moved = false;
      while (auto ready = heads.ready(rank)) {
        runItem(rank, *ready);
        moved = true;
      }
      while (runMessage(rank))
        moved = true;
    }
  }

  void runItem(RankId rank, Time ready) {
    Time &end = ranks[rank.value].computeFree;
    ActionId first = heads.begin(rank), last = heads.end(rank);
    end = std::max(end, ready) + durations.of(program, first, last);
    heads.advance(rank);
    for (ActionId row = first; row != last; ++row.value) {
      ends[row.value] = end;
      Action action = program[row];
      forEachReader(program, index, action,
                    [&](uint8_t slotBit, StageId reader, RankId to) {
                      if (to == rank)
                        heads.deliver(action.pipe, reader, action.microbatch,
                                      slotBit, end);
                    });
    }
  }

  /// Whether the compute actions before the next message of `rank` have run;
  /// `at` is then the end of the last.
  bool issued(RankId rank, Time &at) const {
    ActionId message = ranks[rank.value].message;
    if (message == program.end(rank) || heads.begin(rank) < message)
      return false;
    at = ranks[rank.value].streamFree;
    if (message != program.begin(rank))
      at = std::max(at, ends[message.value - 1]);
    return true;
  }

  /// Runs the next message of `rank` when its other end is next on its rank.
  bool runMessage(RankId rank) {
    Time here = 0, there = 0;
    if (!issued(rank, here))
      return false;
    ActionId row = ranks[rank.value].message;
    Action action = program[row];
    if (!action.hasPeer())
      return false;
    RankId peer = program.rankOfStage(action.pipe, action.peer);
    if (peer == rank || !issued(peer, there))
      return false;
    ActionId other = ranks[peer.value].message;
    if (!isOtherEnd(action, program[other]))
      return false;
    Time end = std::max(here, there) + durations.latency;
    bool sends = program.kinds[action.kind].kindClass == KindClass::Send;
    finish(rank, row, end);
    finish(peer, other, end);
    Action recv = sends ? program[other] : action;
    heads.deliver(recv.pipe, recv.stage, recv.microbatch,
                  program.kinds[recv.kind].mainSlot(), end);
    work.push_back(peer);
    return true;
  }

  bool isOtherEnd(const Action &a, const Action &b) const {
    const KindInfo &here = program.kinds[a.kind],
                   &there = program.kinds[b.kind];
    return here.kindClass != there.kindClass &&
           here.mainSlot() == there.mainSlot() && a.pipe == b.pipe &&
           a.microbatch == b.microbatch && a.stage == b.peer &&
           a.peer == b.stage;
  }

  void finish(RankId rank, ActionId row, Time end) {
    ends[row.value] = end;
    ranks[rank.value].streamFree = end;
    ranks[rank.value].message = nextMessage(rank, ActionId(row.value + 1));
  }

  const Program &program;
  const ProgramIndex &index;
  const Durations &durations;
  Heads heads;
  std::vector<Rank> ranks;
  std::vector<Time> &ends;
  llvm::SmallVector<RankId> work;
};

} // namespace

std::optional<Time> ppcc::dataBound(const Program &program,
                                    const ProgramIndex &index,
                                    const Durations &durations,
                                    std::vector<Time> *starts,
                                    std::vector<Time> *slacks) {
  return DataRun(program, index, durations, starts, slacks).run();
}

std::optional<Time> ppcc::streamMakespan(const Program &program,
                                         const ProgramIndex &index,
                                         const Durations &durations,
                                         std::vector<Time> *ends) {
  std::vector<Time> scratch;
  return StreamRun(program, index, durations, ends ? *ends : scratch).run();
}
