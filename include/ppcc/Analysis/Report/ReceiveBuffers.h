// Follows what ranks receive from the post of the receive to the action that
// reads it.
#pragma once

#include "ppcc/Analysis/Index/EdgeIndex.h"

namespace ppcc {

/// Goes through the list of one rank after the other and tells when a receive
/// takes its buffer, which is when it is posted, and when it gives it back:
/// when the item, an action or a group, that reads the data first has ended.
/// Receives that no edge asks for, or that stand a second time while the first
/// is not read, have no buffer. 4 bytes a message; O(actions) for all ranks.
class ReceiveWalk {
public:
  ReceiveWalk(const Program &program, const EdgeIndex &edges)
      : program(program), edges(edges),
        holders(edges.fits() ? edges.size() : 0, none) {}

  /// Walks over the next rank. Calls `posted(receive, row)` for each receive,
  /// `receive` being its number in the program, `taken(receive, row, message)`
  /// for those with a buffer, and `freed(receive, item, message)` when it gives
  /// it back, `item` being the first row of the item that read it.
  template <class Posted, class Taken, class Freed>
  void run(RankId rank, Posted posted, Taken taken, Freed freed) {
    for (RowRange item : program.items(rank)) {
      uint32_t before = receives;
      for (ActionId row : item) {
        if (!program.kindOf(row).isRecv())
          continue;
        uint32_t receive = receives++;
        posted(receive, row);
        auto message = edges.of(program[row]);
        if (message && holders[message->number] == none) {
          holders[message->number] = receive;
          taken(receive, row, *message);
        }
      }
      for (ActionId row : item) {
        if (!program.kindOf(row).isCompute())
          continue;
        edges.forEachInput(program[row], [&](Message message) {
          uint32_t &holder = holders[message.number];
          // What a group receives itself comes too late for it.
          if (holder >= before)
            return;
          freed(std::exchange(holder, none), item.from, message);
        });
      }
    }
  }

private:
  static constexpr uint32_t none = 0xFFFFFFFF;

  const Program &program;
  const EdgeIndex &edges;
  std::vector<uint32_t> holders; ///< By message: the receive with its buffer.
  uint32_t receives = 0;
};

/// Where each receive must have ended, and how many buffers that takes.
/// O(actions + messages) to make. It does not follow changes of the program.
class ReceiveBuffers {
public:
  ReceiveBuffers(const Program &program, const ProgramIndex &index);

  const EdgeIndex &edges() const { return edgeIndex; }
  /// By receive, in the order of the program: the row before which it must have
  /// ended, which is the first of the item that reads it; the end of the rank's
  /// list when none does.
  ArrayRef<ActionId> waits() const { return waitRows; }
  /// The most buffers that the receives of an edge hold at one time.
  uint32_t peakBuffers(size_t edge) const { return peakBuffersOfEdge[edge]; }
  /// The same of all receives of a rank together.
  uint32_t peakBuffers(RankId rank) const {
    return peakBuffersOfRank[rank.value];
  }

private:
  EdgeIndex edgeIndex;
  std::vector<ActionId> waitRows;
  std::vector<uint32_t> peakBuffersOfEdge, peakBuffersOfRank;
};

} // namespace ppcc
