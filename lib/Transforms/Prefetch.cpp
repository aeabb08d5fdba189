#include "Prefetch.h"

using namespace ppcc;

Prefetch::Prefetch(const Program &program, const ProgramIndex &index,
                   uint32_t bound)
    : program(program), edges(program, index),
      states(edges.fits() ? edges.size() : 0, released), dues(states.size()),
      itemOf(states.size(), noItem), order(states.size()),
      progress(edges.edges().size()) {
  if (!edges.fits())
    return;
  for (uint32_t edge = 0; edge != progress.size(); ++edge)
    if (edges.edges()[edge].channel != Edge::none)
      progress[edge].next = progress[edge].end =
          edges.edges()[edge].firstMessage;
  for (RankId rank : program.ranks())
    for (RowRange item : program.items(rank))
      for (ActionId row : item)
        forEachInput(rank, row, [&](Message message) {
          if (itemOf[message.number] != noItem)
            return;
          itemOf[message.number] = item.from;
          states[message.number] = unreleased;
          order[progress[message.edge].end++] = message.number;
        });
  auto nobodyWaits = [](ActionId, uint8_t, StageId, Time) {};
  for (uint32_t edge = 0; edge != progress.size(); ++edge)
    for (uint32_t i = 0;
         i != bound && progress[edge].next != progress[edge].end; ++i)
      releaseItem(edge, nobodyWaits);
}

bool Prefetch::mayPlace(ActionId producer, const Action &action,
                        uint8_t slotBit, StageId reader, Time due) {
  auto message =
      edges.find(action.pipe, action.stage, reader, action.microbatch, slotBit);
  if (!message || states[message->number] != unreleased)
    return true;
  states[message->number] = producer;
  dues[message->number] = due;
  return false;
}
