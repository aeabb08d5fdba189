// Simulates programs: start and end of each action, makespan, critical path.
//
// Algorithm: discrete-event simulation by EventRun with a clock. An action
// starts once all that it waits for has ended, and its data has arrived. The
// last of these is kept as its cause (critical predecessor), so that the
// critical path is read backwards from the last end.
// Invariant: with a transport, its rules decide when messages start and end.
// Without one, compute actions wait for program order on their rank and for
// data; a send and its receive both span the transfer of the data.
// Cost: linear in the actions.
// Example: P = 2, M = 1, F = 1, B = 2, without latency: 0F0 at 0..1, 1F0 at
// 1..2, 1B0 at 2..4, 0B0 at 4..6; makespan 6, critical path 0F0 1F0 1B0 0B0.
#include "ppcc/Analysis/Run/Simulation.h"

#include "ppcc/Analysis/Run/EventRun.h"

using namespace ppcc;

namespace {

constexpr uint32_t none = Simulation::none;
static_assert(none == noRow);

/// Records the time of each event and its cause.
class Clock : public CostClock {
public:
  /// A time, and the row whose end determined it.
  struct Moment {
    Time at = 0;
    uint32_t cause = none;
  };

  Clock(const Program &program, const Durations &durations,
        const Jitter *jitter, Simulation &result, bool buffersSends)
      : CostClock(program, durations), jitter(jitter), result(result),
        completions(buffersSends ? program.size() : 0) {
    result.starts.resize(program.size());
    result.ends.resize(program.size());
    result.causes.assign(program.size(), none);
    result.hookOffsets = durations.hookOffsets(program);
    if (jitter && hasHookOffsets())
      for (ActionId row : program.rows()) {
        ActionId begin = program.itemOf(row).from;
        auto &[early, late] = result.hookOffsets[row.value];
        early = ofAction(early, begin);
        late = ofAction(late, begin);
      }
  }

  Time time(ActionId row) const { return ofAction(CostClock::time(row), row); }
  Time time(ActionId begin, ActionId end) const {
    return ofAction(CostClock::time(begin, end), begin);
  }
  Time edgeTime(const Action &reader, StageId source) const {
    Time time = CostClock::edgeTime(reader, source);
    return jitter ? jitter->ofMessage(time, reader.pipe, source, reader.stage,
                                      reader.microbatch)
                  : time;
  }
  Time message(const Action &action) const {
    auto [from, to] = program.endpointsOf(action);
    Time time = CostClock::message(action);
    return jitter ? jitter->ofMessage(time, action.pipe, from, to,
                                      action.microbatch)
                  : time;
  }

  void setStart(ActionId row, Moment start) {
    result.starts[row.value] = start.at;
    const KindInfo &info = program.kindOf(row);
    if (info.isCollective() && info.occupiesRank())
      result.startCauses[row.value] = start.cause;
  }
  void setCompletion(ActionId row, Moment at) {
    if (!completions.empty())
      completions[row.value] = at;
  }
  void setEnd(ActionId row, Moment at) {
    result.ends[row.value] = at.at;
    result.causes[row.value] = at.cause;
  }
  Moment startOf(ActionId row, Moment ready) const {
    return {result.starts[row.value], ready.cause};
  }
  Moment completionOf(ActionId row) const { return completions[row.value]; }
  /// Delays `ready` until `delay` after the end of a row.
  void wait(Moment &ready, ActionId row, Time delay) const {
    Time at = result.ends[row.value] + delay;
    if (at > ready.at || ready.cause == none)
      ready = {std::max(ready.at, at), row.value};
  }
  Moment freeAfter(Moment end, ActionId row) {
    result.makespan = std::max(result.makespan, end.at);
    return {end.at, row.value};
  }
  static Moment later(Moment a, Moment b) { return b.at > a.at ? b : a; }
  static Moment laterOrFirst(Moment latest, Moment start) {
    return latest.cause == none ? start : later(latest, start);
  }
  static Moment plus(Moment moment, Time time) {
    return {moment.at + time, moment.cause};
  }

  bool hasHookOffsets() const { return durations.hasHookOffsets(); }
  Time early(ActionId row) const { return result.hookOffsetsOf(row).early; }
  Time late(ActionId row) const { return result.hookOffsetsOf(row).late; }

private:
  Time ofAction(Time time, ActionId begin) const {
    return jitter
               ? jitter->ofAction(time, program[begin], program.rankOf(begin))
               : time;
  }

  const Jitter *jitter; ///< Null for the times of the costs.
  Simulation &result;
  std::vector<Moment> completions; ///< By row, if sends are buffered.
};

} // namespace

/// Sets the start and the end of each message to those of its transfer. False
/// if a message has no peer or its data no producer.
static bool timeMessages(const Program &program, const ProgramIndex &index,
                         const Durations &durations, Simulation &result) {
  for (ActionId row : program.rows()) {
    const KindInfo &info = program.kindOf(row);
    if (info.isCompute())
      continue;
    Action action = program[row];
    if (!action.hasPeer())
      return false;
    StageId from = info.isSend() ? action.stage : action.peer;
    auto producer =
        index.definer(action.pipe, from, action.microbatch, info.mainSlot());
    if (!producer)
      return false;
    result.starts[row.value] =
        result.ends[producer->value] - result.hookOffsetsOf(*producer).early;
    result.ends[row.value] =
        result.starts[row.value] + durations.ofMessage(program, action);
    result.causes[row.value] = producer->value;
  }
  return true;
}

std::optional<Simulation> ppcc::simulate(const Program &program,
                                         const ProgramIndex &index,
                                         const Durations &durations,
                                         const Jitter *jitter) {
  Simulation result;
  EventRun<Clock> run(program, index, nullptr, {},
                      Clock(program, durations, jitter, result, false));
  if (!run.run() || !run.isWhole() ||
      !timeMessages(program, index, durations, result))
    return std::nullopt;
  return result;
}

std::optional<Simulation>
ppcc::simulate(const Program &program, const ProgramIndex &index,
               const MessageIndex &messages, const Durations &durations,
               const Transport &transport, const Jitter *jitter) {
  if (!messages.fits())
    return std::nullopt;
  Simulation result;
  EventRun<Clock> run(program, index, &messages, {&transport},
                      Clock(program, durations, jitter, result,
                            transport.sendWait != SendWait::Receive));
  if (!run.run() || !run.isWhole())
    return std::nullopt;
  return result;
}

std::vector<ActionId> ppcc::criticalPath(const Simulation &simulation) {
  std::vector<ActionId> path;
  auto last = llvm::max_element(simulation.ends);
  uint32_t row =
      last == simulation.ends.end() ? none : last - simulation.ends.begin();
  for (; row != none; row = simulation.causes[row])
    path.push_back(ActionId(row));
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<RankTimes> ppcc::rankTimes(const Program &program,
                                       const Durations &durations,
                                       const Simulation &simulation) {
  std::vector<RankTimes> ranks;
  for (RankId rank : program.ranks()) {
    RankTimes &times = ranks.emplace_back();
    bool isFirst = true;
    for (RowRange item : program.items(rank)) {
      ActionId row = *llvm::find_if(item, [&](ActionId row) {
        return program.kindOf(row).occupiesRank();
      });
      if (row == item.to)
        continue;
      if (std::exchange(isFirst, false))
        times.begin = simulation.starts[row.value];
      times.end = simulation.ends[row.value];
      times.busy += durations.of(program, row, item.to);
    }
  }
  return ranks;
}
