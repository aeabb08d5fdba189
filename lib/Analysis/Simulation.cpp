// Runs programs with a clock.
#include "ppcc/Analysis/Simulation.h"

#include "ppcc/Analysis/EventRun.h"

using namespace ppcc;

namespace {

constexpr uint32_t none = Simulation::none;
static_assert(none == noRow);

/// Notes when each event happens, and what let it.
class Clock : public CostClock {
public:
  /// A time, and the row whose end let it come.
  struct Moment {
    Time at = 0;
    uint32_t cause = none;
  };

  Clock(const Program &program, const Durations &durations, Simulation &result,
        bool storesSends)
      : CostClock(program, durations), result(result),
        completions(storesSends ? program.size() : 0) {
    result.starts.resize(program.size());
    result.ends.resize(program.size());
    result.causes.assign(program.size(), none);
    result.hookOffsets = durations.hookOffsets(program);
  }

  void begin(ActionId row, Moment start) {
    result.starts[row.value] = start.at;
    const KindInfo &info = program.kindOf(row);
    if (info.isCollective() && info.occupiesRank())
      result.startCauses[row.value] = start.cause;
  }
  void complete(ActionId row, Moment at) {
    if (!completions.empty())
      completions[row.value] = at;
  }
  void end(ActionId row, Moment at) {
    result.ends[row.value] = at.at;
    result.causes[row.value] = at.cause;
  }
  Moment started(ActionId row, Moment ready) const {
    return {result.starts[row.value], ready.cause};
  }
  Moment completed(ActionId row) const { return completions[row.value]; }
  /// Moves what is ready after the end of a row.
  void wait(Moment &ready, ActionId row, Time delay) const {
    Time at = result.ends[row.value] + delay;
    if (at > ready.at || ready.cause == none)
      ready = {std::max(ready.at, at), row.value};
  }
  Moment free(Moment end, ActionId row) {
    result.makespan = std::max(result.makespan, end.at);
    return {end.at, row.value};
  }
  static Moment later(Moment a, Moment b) { return b.at > a.at ? b : a; }
  static Moment joined(Moment latest, Moment start) {
    return latest.cause == none ? start : later(latest, start);
  }
  static Moment after(Moment moment, Time time) {
    return {moment.at + time, moment.cause};
  }

  bool hasHookOffsets() const { return durations.hasHookOffsets(); }
  Time early(ActionId row) const { return result.hookOffsetsOf(row).early; }
  Time late(ActionId row) const { return result.hookOffsetsOf(row).late; }

private:
  Simulation &result;
  std::vector<Moment> completions; ///< By row, where sends are stored.
};

} // namespace

/// Gives each message the time that its data is on its way; false when it has
/// none.
static bool placeMessages(const Program &program, const ProgramIndex &index,
                          const Durations &durations, Simulation &result) {
  for (ActionId row : program.rows()) {
    const KindInfo &info = program.kindOf(row);
    if (info.isCompute())
      continue;
    Action action = program[row];
    if (!action.hasPeer())
      return false;
    StageId from = info.isSend() ? action.stage : action.peer;
    auto maker =
        index.definer(action.pipe, from, action.microbatch, info.mainSlot());
    if (!maker)
      return false;
    result.starts[row.value] =
        result.ends[maker->value] - result.hookOffsetsOf(*maker).early;
    result.ends[row.value] =
        result.starts[row.value] + durations.ofMessage(program, action);
    result.causes[row.value] = maker->value;
  }
  return true;
}

std::optional<Simulation> ppcc::simulate(const Program &program,
                                         const ProgramIndex &index,
                                         const Durations &durations) {
  Simulation result;
  EventRun<Clock> run(program, index, nullptr, {},
                      Clock(program, durations, result, false));
  if (!run.run() || !run.isWhole() ||
      !placeMessages(program, index, durations, result))
    return std::nullopt;
  return result;
}

std::optional<Simulation> ppcc::simulate(const Program &program,
                                         const ProgramIndex &index,
                                         const MessageIndex &messages,
                                         const Durations &durations,
                                         const Transport &transport) {
  if (!messages.fits())
    return std::nullopt;
  Simulation result;
  EventRun<Clock> run(program, index, &messages, {&transport},
                      Clock(program, durations, result,
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
