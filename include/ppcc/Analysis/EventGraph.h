// Runs a program on a transport, each action as soon as it can.
#pragma once

#include "ppcc/Analysis/MessageIndex.h"
#include "ppcc/IR/Transport.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace ppcc {

/// Why an action cannot start or end.
enum class NeedKind : uint8_t {
  Queue, ///< The action before it in its queue must have ended.
  Issue, ///< So must the compute action before it on its rank.
  Data,  ///< So must the action that makes, or receives, what it reads.
  Start, ///< The other end of its message, or all that meet with it, must have
         ///< started.
  Room,  ///< A receive must have ended, so that the send can be stored.
};

/// What an action waits for: a row of another action.
struct Need {
  NeedKind kind = NeedKind::Queue;
  ActionId row;
};

/// The event graph of a program under a transport, run with Kahn's algorithm.
///
/// Each action has a start and an end. Its edges are not stored: they follow
/// from the position of a row and from the indices. A unit is what starts at
/// once and ends at once: an action, the compute actions of a group or its
/// communication; on one queue all of a group. A unit is named by its first
/// row, and waits for one event at a time, in the list of that event's row.
/// O(actions); up to 25 bytes an action and
/// 6 a pair of stage and microbatch.
class EventGraph {
public:
  EventGraph(const Program &program, const ProgramIndex &index,
             const MessageIndex &messages, const Transport &transport);

  /// Runs all that can run; false when something is left.
  bool run();

  /// A compute action that needs a message without a receive.
  struct Lack {
    ActionId row;
    StageId source;
    uint8_t slotBit;
  };
  /// The first one met in run().
  std::optional<Lack> lack() const { return firstLack; }

  /// A unit at the head of its queues that cannot go on, and one thing that it
  /// waits for.
  struct Block {
    uint32_t unit;
    ActionId blocked; ///< Its member that waits.
    Need need;
    uint32_t on; ///< The unit, at the head of its queues too, that `need.row`
                 ///< belongs to or is queued behind.
  };
  /// All that blocks the program, sorted by unit, after a run() that gave
  /// false.
  std::vector<Block> blocks();
  /// The shortest circle of them, as WaitCycle.h has it.
  std::vector<Block> shortestCircle();

  uint32_t unitOf(ActionId row) const {
    return units.empty() ? row.value : units[row.value];
  }

private:
  static constexpr uint32_t none = 0xFFFFFFFF;
  enum State : uint8_t { Waiting, Started, Completed, Ended };

  /// How far a unit has come. Before its start: the member, and the number of
  /// that member's need, that it waits for. Then: the members not completed.
  struct Progress {
    uint32_t member = 0, need = 0, open = 0;
  };

  void findLanes();
  void findUnits();
  void countSources();
  void linkPartners();
  void linkQueues();

  bool isSingle(uint32_t row) const {
    return units.empty() ||
           (!program.joined(ActionId(row)) &&
            (row + 1 == program.size() || !program.joined(ActionId(row + 1))));
  }
  uint32_t groupEnd(uint32_t row) const;
  template <class Visit> void forEachMember(uint32_t unit, Visit visit) const;

  bool isCompute(uint32_t row) const {
    return program.kindOf(ActionId(row)).isCompute();
  }
  /// Whether it waits for the action of the rank before it without standing in
  /// its queue.
  bool isIssued(uint32_t row) const {
    return transport.hasStreams() ||
           (!lanes.empty() && lanes[row] != lane::Compute);
  }
  bool met(Need need) const;
  /// What has come to a stage and microbatch.
  struct Pair {
    uint16_t received[2] = {}; ///< Inputs from other ranks, by moving slot.
    uint8_t filled = 0;        ///< Slots whose action has ended.
  };
  Pair &pairOf(const Action &action, StageId stage) {
    const Pipe &pipe = program.pipes[action.pipe.value];
    return pairs[firstPair[action.pipe.value] +
                 size_t(stage.value) * pipe.numMicrobatches +
                 (action.microbatch - pipe.firstMicrobatch)];
  }
  /// Whether all that an action by itself needs to start is met; false where
  /// that takes a closer look.
  bool surelyCanStart(uint32_t row);
  bool surelyHasInput(const Action &action, const Pair &pair, uint8_t slotBit);
  void handOn(uint32_t row);
  /// The needs that a row has to start, by number: vacuous ones have no row,
  /// nothing comes beyond the last.
  struct StartNeed {
    Need need;
    bool isVacuous = true, isLast = false;
  };
  StartNeed startNeed(uint32_t row, const Action &action, uint32_t number);
  StartNeed dataNeed(uint32_t row, const Action &action, uint32_t number);
  std::optional<Need> endNeed(uint32_t row);
  void joinMeeting(uint32_t meeting);
  /// The first unmet need from the place that `progress` tells, which is moved
  /// there.
  std::optional<Need> unmetStart(uint32_t unit, Progress &progress);

  void tryStart(uint32_t unit);
  void start(uint32_t unit);
  void markStarted(uint32_t row);
  void tryComplete(uint32_t row);
  void end(uint32_t unit);
  void waitFor(uint32_t waiter, ActionId row);
  void wake(uint32_t row);

  const Program &program;
  const ProgramIndex &index;
  const MessageIndex &messages;
  const Transport &transport;
  std::vector<uint8_t> lanes; ///< By row; those with a queue of their own,
                              ///< else 0. Empty when no action has one.
  /// Members that have not started: how many, and the first.
  struct MeetingState {
    uint32_t open = 0, firstAbsent = 0;
  };
  std::vector<MeetingState> meetings;
  std::vector<uint32_t> units;    ///< By row; empty without groups.
  std::vector<uint32_t> previous; ///< By row: the one before it in its queue.
  std::vector<uint32_t> partners; ///< By row: the other end of a message.
  /// By row: on streams the compute action before a send or receive; with a
  /// capacity the receive that makes room for a send; the action of the rank
  /// before one with a queue of its own.
  std::vector<uint32_t> beside;
  std::vector<uint32_t> firstWaiter; ///< By row.
  std::vector<uint32_t> nextWaiter;  ///< By waiter.
  std::vector<State> states;         ///< By row.
  std::vector<size_t> firstPair;     ///< Of each pipe, in the numbering of all.
  std::vector<Pair> pairs;           ///< By stage and microbatch.
  /// By stage and moving slot: the sources on other ranks, and whether there
  /// are any on its own.
  struct Sources {
    uint16_t remote = 0;
    bool local = false;
  };
  std::vector<size_t> firstSources; ///< Of each pipe.
  std::vector<Sources> sources;
  llvm::DenseMap<uint32_t, Progress>
      progressOf; ///< Of units of several members, or with many needs.
  llvm::SmallVector<uint32_t> awake;
  size_t left = 0; ///< Rows that have not ended.
  std::optional<Lack> firstLack;
};

} // namespace ppcc
