// Bounds how many receives of an edge are posted ahead of their readers.
#pragma once

#include "ppcc/Analysis/Index/EdgeIndex.h"

namespace ppcc {

/// Keeps messages back until their turn. The messages of an edge are numbered
/// by the items, actions or groups, that read them, in the order of the
/// reader's rank; those of item k may be placed once item k - bound has run. So
/// what the next item of a rank reads is never kept back, and no order loses
/// progress. Messages that nobody reads are not kept back either. 20 bytes a
/// message; O(actions + messages) over the whole run.
class Prefetch {
public:
  Prefetch(const Program &program, const ProgramIndex &index, uint32_t bound)
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

  /// Whether the message of the action in row `producer` may be placed now. If
  /// not, hasRun() gives it out later, with its `due`.
  bool mayPlace(ActionId producer, const Action &action, uint8_t slotBit,
                StageId reader, Time due = 0) {
    auto message = edges.find(action.pipe, action.stage, reader,
                              action.microbatch, slotBit);
    if (!message || states[message->number] != unreleased)
      return true;
    states[message->number] = producer;
    dues[message->number] = due;
    return false;
  }

  /// Notes that the item from `begin` to `end` of `rank` has run. Calls
  /// `go(producer, slotBit, reader, due)` for each message whose turn comes by
  /// that, of those that were kept back.
  template <class Go>
  void hasRun(RankId rank, ActionId begin, ActionId end, Go go) {
    for (ActionId row : RowRange{begin, end})
      forEachInput(rank, row, [&](Message message) {
        Progress &state = progress[message.edge];
        // A group may read several messages of an edge.
        if (itemOf[message.number] != begin || state.lastItem == begin)
          return;
        state.lastItem = begin;
        releaseItem(message.edge, go);
      });
  }

private:
  /// How far an edge has come.
  struct Progress {
    uint32_t next = 0, end = 0; ///< Of `order`: the messages kept back.
    ActionId lastItem = noItem; ///< Of its readers, the last that has run.
  };
  static constexpr ActionId noItem{0xFFFFFFFF};
  /// Of a message whose turn has, or has not, come; else it is kept back, and
  /// this is its producer.
  static constexpr ActionId released{0xFFFFFFFF}, unreleased{0xFFFFFFFE};

  template <class Visit>
  void forEachInput(RankId rank, ActionId row, Visit visit) const {
    Action action = program[row];
    if (program.rankOfStage(action.pipe, action.stage) == rank)
      edges.forEachInput(action, visit);
  }

  /// Lets the messages of the next item of an edge go.
  template <class Go> void releaseItem(uint32_t edge, Go go) {
    Progress &state = progress[edge];
    if (state.next == state.end)
      return;
    ActionId item = itemOf[order[state.next]];
    while (state.next != state.end && itemOf[order[state.next]] == item) {
      uint32_t message = order[state.next++];
      ActionId producer = std::exchange(states[message], released);
      if (producer != unreleased)
        go(producer, edges.edges()[edge].slotBit, edges.edges()[edge].to,
           dues[message]);
    }
  }

  const Program &program;
  EdgeIndex edges;
  std::vector<ActionId> states;   ///< By message.
  std::vector<Time> dues;         ///< By message: of those kept back.
  std::vector<ActionId> itemOf;   ///< By message: the item that reads it.
  std::vector<uint32_t> order;    ///< Messages, edge by edge, as they are read.
  std::vector<Progress> progress; ///< By edge.
};

} // namespace ppcc
