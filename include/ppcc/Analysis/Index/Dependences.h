// What an action waits for, and who waits for it.
#pragma once

#include "ppcc/Analysis/Index/ProgramIndex.h"

namespace ppcc {

/// Calls `visit(ActionId)` for each action of its own stage, or its rank, that
/// a row waits for: by the rules of declared kinds, then, of a compute action,
/// for the slots that it reads. Those that no action fills are passed over.
/// `visit` may be called twice for one action.
template <class Visit>
void forEachOwnNeed(const Program &program, const ProgramIndex &index,
                    ActionId row, Visit visit) {
  for (ActionId needed : index.rules().neededBy(row))
    visit(needed);
  Action action = program[row];
  const KindInfo &info = program.kindOf(action);
  for (uint8_t slotBit : slotsIn(info.isCompute() ? info.needs : 0))
    if (auto definer = index.definer(action.pipe, action.stage,
                                     action.microbatch, slotBit))
      visit(*definer);
}

/// The same, and then for results of the neighbours, and of other slices of its
/// sequence.
template <class Visit>
void forEachDependence(const Program &program, const ProgramIndex &index,
                       ActionId row, Visit visit) {
  forEachOwnNeed(program, index, row, visit);
  Action action = program[row];
  const KindInfo &info = program.kindOf(action);
  auto visitMaker = [&](StageId stage, uint32_t microbatch, uint8_t slotBit) {
    if (auto definer = index.definer(action.pipe, stage, microbatch, slotBit))
      visit(*definer);
  };
  for (uint8_t slotBit : slotsIn(info.isCompute() ? info.defines : 0)) {
    for (StageId source : index.sourcesOf(action.pipe, action.stage, slotBit))
      visitMaker(source, action.microbatch, slotBit);
    if (auto before =
            program.pipe(action.pipe).sliceBefore(action.microbatch, slotBit))
      visitMaker(action.stage, *before, slotBit);
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

/// Calls `visit(slotBit, reader)` for each result of the compute action
/// `producer` that a stage on another rank reads.
template <class Visit>
void forEachMessage(const Program &program, const ProgramIndex &index,
                    const Action &producer, Visit visit) {
  RankId home = program.rankOfStage(producer.pipe, producer.stage);
  forEachReader(program, index, producer,
                [&](uint8_t slotBit, StageId reader, RankId rank) {
                  if (rank != home)
                    visit(slotBit, reader);
                });
}

} // namespace ppcc
