// Copies rows and places messages.
#include "CommPlan.h"

#include "ppcc/IR/Place.h"

using namespace ppcc;

CommWriter::CommWriter(const Program &program, Program &result)
    : program(program), result(result) {
  for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
    nextRow.push_back(program.begin(RankId(rank)).value);
    cursor.push_back(result.begin(RankId(rank)).value);
  }
  forEachSlot(slot::Output | slot::InputGrad, [&](uint8_t slotBit) {
    unsigned i = std::countr_zero(slotBit);
    sendOf[i] = *program.kinds.find(KindClass::Send, slotBit);
    recvOf[i] = *program.kinds.find(KindClass::Recv, slotBit);
  });
}

void CommWriter::copyItem(RankId rank) {
  uint32_t end = program.groupEnd(next(rank), rank).value;
  for (uint32_t &row = nextRow[rank.value]; row != end; ++row)
    result.set(ActionId(cursor[rank.value]++), program[ActionId(row)]);
}

void CommWriter::send(const Action &producer, RankId rank, uint8_t slotBit,
                      StageId reader) {
  Action row = producer;
  row.joined = false;
  row.kind = sendOf[std::countr_zero(slotBit)];
  row.peer = reader;
  result.set(ActionId(cursor[rank.value]++), row);
}

void CommWriter::receive(const Action &producer, uint8_t slotBit,
                         StageId reader) {
  RankId to = program.rankOfStage(producer.pipe, reader);
  Action row = producer;
  row.joined = false;
  row.kind = recvOf[std::countr_zero(slotBit)];
  row.stage = reader;
  row.peer = producer.stage;
  row.phase = PhaseId();
  if (program.size(to) != 0) {
    ActionId before = done(to) ? ActionId(next(to).value - 1) : next(to);
    row.phase = program[before].phase;
  }
  result.set(ActionId(cursor[to.value]++), row);
}

void ppcc::reportStuckOn(const CommPlan &plan, RankId rank, ActionId row,
                         uint8_t slotBit, StageId source) {
  Action action = plan.program[row];
  plan.diags.report<diag::CommStuck>(
      placeOf(plan.program, row, plan.sources), rank.value,
      cell(plan.program, action),
      slotBit == slot::Output ? "output" : "gradient", source.value,
      action.microbatch, plan.program.rankOfStage(action.pipe, source).value);
}
