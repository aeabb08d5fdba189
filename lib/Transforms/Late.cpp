// Places each receive just before its consumer, each send directly after its
// producer.
#include "CommPlan.h"

using namespace ppcc;

namespace {

class Late {
public:
  explicit Late(CommPlan &plan)
      : plan(plan), program(plan.program), writer(plan.writer) {}

  void run() {
    for (RankId i : program.ranks())
      for (RankId rank(i.value); !writer.done(rank);) {
        ActionId begin = writer.next(rank), end = program.groupEnd(begin, rank);
        for (ActionId row : RowRange{begin, end})
          receive(rank, row);
        writer.copyItem(rank);
        for (ActionId row : RowRange{begin, end})
          send(rank, program[row]);
      }
    for (ActionId row : program.rows())
      receiveUnused(row);
  }

private:
  /// The row that receives what `reader` reads, if it is on the reader's rank.
  std::optional<ActionId> consumer(const Action &producer, uint8_t slotBit,
                                   StageId reader) const {
    auto row =
        plan.index.definer(producer.pipe, reader, producer.microbatch, slotBit);
    RankId rank = program.rankOfStage(producer.pipe, reader);
    bool isHere =
        row && *row >= program.begin(rank) && *row < program.end(rank);
    return isHere ? row : std::nullopt;
  }

  /// The receives of what the action in `row` reads.
  void receive(RankId rank, ActionId row) {
    Action action = program[row];
    forEachSlot(program.kindOf(action).defines, [&](uint8_t slotBit) {
      for (StageId source :
           plan.index.sourcesOf(action.pipe, action.stage, slotBit)) {
        auto from =
            plan.index.definer(action.pipe, source, action.microbatch, slotBit);
        if (from && program.rankOfStage(action.pipe, source) != rank &&
            consumer(program[*from], slotBit, action.stage) == row)
          writer.receive(program[*from], slotBit, action.stage);
      }
    });
  }

  void send(RankId rank, const Action &producer) {
    forEachMessage(program, plan.index, producer,
                   [&](uint8_t slotBit, StageId reader) {
                     writer.send(producer, rank, slotBit, reader);
                   });
  }

  /// The receives of what no action reads, or what is made a second time.
  void receiveUnused(ActionId row) {
    Action producer = program[row];
    forEachMessage(
        program, plan.index, producer, [&](uint8_t slotBit, StageId reader) {
          bool isFirst =
              plan.index.definer(producer.pipe, producer.stage,
                                 producer.microbatch, slotBit) == row;
          if (!isFirst || !consumer(producer, slotBit, reader))
            writer.receive(producer, slotBit, reader);
        });
  }

  CommPlan &plan;
  const Program &program;
  CommWriter &writer;
};

} // namespace

bool ppcc::planLate(CommPlan &plan) {
  Late(plan).run();
  return true;
}
