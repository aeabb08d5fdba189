// Places messages as PyTorch's _add_send_recv and d9d do: after the item that
// makes them, and on the rank that reads them after all that it has run by
// then.
#include "CommPlan.h"
#include "Prefetch.h"

#include "ppcc/Analysis/Run/Turns.h"

using namespace ppcc;

namespace {

struct Sweep {
  CommPlan &plan;

  bool run() {
    if (plan.prefetch)
      prefetch.emplace(program, plan.index, *plan.prefetch);
    std::vector<std::vector<TorchStep>> steps;
    if (plan.torch)
      for (RankId rank : program.ranks())
        steps.push_back(torchSteps(program, rank, *plan.torch));
    Turns turns(program, plan.index, std::move(steps));
    sweeps = &turns;
    auto stuck = turns.run(*this);
    if (stuck)
      reportStuck(plan, turns.state(), *stuck);
    return !stuck;
  }

  void item(RankId rank, ActionId, ActionId) {
    writer.setRowTimes({sweeps->sweep()});
    writer.copyItem(rank);
  }

  void result(ActionId row, RankId rank, uint8_t slotBit, StageId reader) {
    Action action = program[row];
    writer.setRowTimes({sweeps->sweep(), 0, 0, row.value});
    if (!prefetch || prefetch->mayPlace(row, action, slotBit, reader))
      writer.message(action, rank, slotBit, reader);
  }

  /// Behind the results of the item, which other ranks may wait for.
  void itemDone(RankId rank, ActionId begin, ActionId end) {
    if (prefetch)
      prefetch->hasRun(
          rank, begin, end,
          [&](ActionId producer, uint8_t slotBit, StageId reader, Time) {
            writer.message(program[producer], program.rankOf(producer), slotBit,
                           reader);
          });
  }

  void step(RankId, size_t) {}

  const Program &program = plan.program;
  CommWriter &writer = plan.writer;
  const Turns *sweeps = nullptr;
  std::optional<Prefetch> prefetch{};
};

} // namespace

bool ppcc::planSweep(CommPlan &plan) { return Sweep{plan}.run(); }
