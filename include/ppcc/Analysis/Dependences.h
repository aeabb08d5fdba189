// What an action waits for.
#pragma once

#include "ppcc/Analysis/ProgramIndex.h"

namespace ppcc {

/// Calls `visit(ActionId)` for each action that a row waits for: by the rules
/// of declared kinds, then, of a compute action, for results of its own stage,
/// of the neighbours, and of other slices of its sequence. Results that no
/// action produces are passed over. `visit` may be called twice for one action.
template <class Visit>
void forEachDependence(const Program &program, const ProgramIndex &index,
                       ActionId row, Visit visit) {
  for (ActionId needed : index.rules().neededBy(row))
    visit(needed);
  Action action = program[row];
  const KindInfo &info = program.kindOf(action);
  if (!info.isCompute())
    return;
  auto visitSlot = [&](StageId stage, uint8_t slotBit) {
    if (auto definer =
            index.definer(action.pipe, stage, action.microbatch, slotBit))
      visit(*definer);
  };
  for (uint8_t slotBit : slotsIn(info.needs))
    visitSlot(action.stage, slotBit);
  const Pipe &pipe = program.pipe(action.pipe);
  for (uint8_t slotBit : slotsIn(info.defines)) {
    for (StageId source : index.sourcesOf(action.pipe, action.stage, slotBit))
      visitSlot(source, slotBit);
    if (auto before = pipe.sliceBefore(action.microbatch, slotBit))
      if (auto definer =
              index.definer(action.pipe, action.stage, *before, slotBit))
        visit(*definer);
  }
}

/// Calls `visit(slotBit, reader, rank)` for each stage that reads a result of
/// the compute action `action`, with the rank that hosts it.
template <class Visit>
void forEachReader(const Program &program, const ProgramIndex &index,
                   const Action &action, Visit visit) {
  const KindInfo &info = program.kindOf(action);
  for (uint8_t slotBit : slotsIn(info.isCompute() ? info.defines : 0))
    for (StageId reader : index.readersOf(action.pipe, action.stage, slotBit))
      visit(static_cast<uint8_t>(slotBit), reader,
            program.rankOfStage(action.pipe, reader));
}

} // namespace ppcc
