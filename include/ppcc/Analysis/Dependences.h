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
  const KindInfo &info = program.kinds()[action.kind];
  if (!info.isCompute())
    return;
  auto visitSlot = [&](StageId stage, uint8_t slotBit) {
    if (auto definer =
            index.definer(action.pipe, stage, action.microbatch, slotBit))
      visit(*definer);
  };
  for (unsigned rest = info.needs; rest; rest &= rest - 1)
    visitSlot(action.stage, rest & -rest);
  const Pipe &pipe = program.pipes()[action.pipe.value];
  for (unsigned rest = info.defines; rest; rest &= rest - 1) {
    uint8_t slotBit = rest & -rest;
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
  const KindInfo &info = program.kinds()[action.kind];
  for (unsigned rest = info.isCompute() ? info.defines : 0; rest;
       rest &= rest - 1)
    for (StageId reader :
         index.readersOf(action.pipe, action.stage, rest & -rest))
      visit(static_cast<uint8_t>(rest & -rest), reader,
            program.rankOfStage(action.pipe, reader));
}

} // namespace ppcc
