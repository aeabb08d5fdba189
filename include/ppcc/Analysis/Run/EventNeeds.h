// Computes what each row waits for, before it starts and before it ends.
//
// The needs are the edges of a marked graph (Commoner, Holt, Even, Pnueli
// 1971), computed on demand from the row, the indices and the transport. Before
// the start: the rows before it on its rank and in its queue, the producers of
// its data, and the rules of declared kinds. Before the end of a message: the
// start of its other end, or room in a buffer.
// Invariant: the state of a row only grows (Waiting, Started, Completed,
// Ended), so a need that is met stays met. The run can test needs one after
// another.
// Cost: the constructor takes O(rows) time, and O(stages * microbatches) where
// it records data. It stores 1 byte a row, 4 more with streams or lanes, and 8
// more with a buffer capacity. The needs of a row take O(its edges and rules).
// Example, transport `buffered:2`: send k of a channel waits for receive k - 2.
//   rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2
//   rank 1: 1RECV_F0 1F0 1RECV_F1 1F1 1RECV_F2 1F2
// 0SEND_F2 starts after 0F2 and ends once 1RECV_F0 is completed.
#pragma once

#include "ppcc/Analysis/Index/GroupIndex.h"
#include "ppcc/Analysis/Index/MessageIndex.h"
#include "ppcc/Analysis/Index/PairNumbering.h"
#include "ppcc/IR/Transport.h"

namespace ppcc {

inline constexpr uint32_t noRow = 0xFFFFFFFF;

/// Whether an action has a queue beside those of compute actions and messages:
/// its lane is neither `compute` nor, where messages have one queue, `comm`.
inline bool hasOwnQueue(const KindInfo &info, QueueLayout layout) {
  bool oneOfMessages =
      layout == QueueLayout::One || layout == QueueLayout::Stream;
  return info.isAsync() && !(info.lane == lane::Comm && oneOfMessages);
}

/// Numbers the queues: that of a rank's compute actions, and of all its actions
/// where there is one, has the number of the rank; then come the streams, and
/// then the other lanes of the ranks.
class Queues {
public:
  /// `messages` is asked for messages only, and where they have several queues.
  Queues(const Program &program, const MessageIndex *messages,
         QueueLayout layout);

  size_t size() const { return count; }
  /// The queue that runs an action of `rank`. A message that no edge asks for
  /// is with the compute actions.
  uint32_t of(const Action &action, RankId rank) const;

private:
  void numberStreams();

  const Program &program;
  const MessageIndex *messages;
  QueueLayout layout;
  size_t count, firstLane;
  std::vector<uint32_t> streamOfSends, streamOfReceives; ///< By lane.
};

/// By row: the last action of the rank's own queue before the group of one that
/// runs beside it, which is issued after it; noRow for other rows. The own
/// queue is that of the compute actions, or, with one queue, of messages too.
/// O(actions).
std::vector<uint32_t> issuePredecessors(const Program &program,
                                        QueueLayout layout);

/// By row: the receive that makes room for a send where `capacity` messages are
/// stored; noRow for other rows. O(actions).
std::vector<uint32_t> bufferFreeingReceives(const Program &program,
                                            const MessageIndex &messages,
                                            uint32_t capacity);

/// Why an action cannot start or end.
enum class NeedKind : uint8_t {
  Queue,  ///< The action before it in its queue must have ended.
  Issue,  ///< So must the compute action before it on its rank.
  Data,   ///< So must the action that makes, or receives, what it reads.
  Start,  ///< The other end of its message, or all that meet with it, must have
          ///< started.
  Buffer, ///< A receive must be through, so that the send can be stored.
};

/// What an action waits for: a row of another action.
struct Need {
  NeedKind kind = NeedKind::Queue;
  ActionId row;
};

/// What messages do to the actions of a program.
struct ExecutionModel {
  const Transport *transport = nullptr; ///< None: actions wait for data alone.
  /// Without a transport: each rank runs all its rows in one line, messages in
  /// no time; else its lanes run side by side, and messages are left out.
  bool inProgramOrder = false;
};

/// What each row waits for, before it starts and before it ends. It is not
/// stored: it follows from the position of the row and from the indices, and
/// from how far the rows have come. O(actions) to make.
class EventNeeds {
public:
  /// A compute action that needs a message without a receive.
  struct MissingDependence {
    ActionId row;
    StageId source;
    uint8_t slotBit;
  };
  /// The first one met, which was not waited for.
  std::optional<MissingDependence> missingDependence() const {
    return firstMissing;
  }
  /// Whether all that was read is made somewhere.
  bool isWhole() const { return whole; }

protected:
  static constexpr uint32_t none = noRow;
  enum State : uint8_t { Waiting, Started, Completed, Ended };
  /// Both ends of a message.
  struct Ends {
    ActionId send, recv;
    ActionId other(ActionId row) const { return row == send ? recv : send; }
  };

  /// With `recordsData` it keeps by stage and microbatch what is there, for a
  /// quick look.
  EventNeeds(const Program &program, const ProgramIndex &index,
             const MessageIndex *messages, ExecutionModel model,
             bool recordsData);

  State state(ActionId row) const {
    return static_cast<State>(states[row.value] & ~hasWaiters);
  }
  void setState(ActionId row, State state) {
    states[row.value] = (states[row.value] & hasWaiters) | state;
  }
  bool met(Need need) const {
    static constexpr State enough[] = {/*Queue=*/Ended, /*Issue=*/Ended,
                                       /*Data=*/Ended,
                                       /*Start=*/Started, /*Buffer=*/Completed};
    return state(need.row) >= enough[static_cast<size_t>(need.kind)];
  }
  bool isCompute(ActionId row) const { return program.kindOf(row).isCompute(); }
  /// Whether `row`, of the same group, belongs to the unit of `begin`.
  bool isMember(ActionId row, ActionId begin) const {
    if (row == begin)
      return true;
    if (hasLanes && (hasQueueOfItsOwn(row) || hasQueueOfItsOwn(begin)))
      return false;
    return !splitsGroups || isCompute(row) == isCompute(begin);
  }
  bool isInQueues(ActionId row) const {
    return !skipsMessages || isCompute(row);
  }
  uint32_t queueOf(ActionId row, RankId rank) const {
    return model.inProgramOrder ? rank.value : numbers.of(program[row], rank);
  }

  template <class Clock, class Visit>
  bool forEachNeed(ActionId row, uint32_t before, uint32_t &rule,
                   const Clock &clock, const Visit &visit);
  std::optional<Ends> endsOf(ActionId row) const;
  std::optional<Need> endNeed(ActionId row, Ends ends) const;
  /// Notes what a row that ended leaves for others.
  void recordResult(ActionId row) {
    if (!pairs.empty())
      recordData(row);
  }

  const Program &program;
  const ProgramIndex &index;
  const MessageIndex *messages;
  const ExecutionModel model;
  const QueueLayout layout;
  const bool hasStreams, hasLanes;
  /// Messages keep no action waiting, nor are there rules that name them.
  const bool skipsMessages;
  const bool splitsGroups; ///< The compute actions of a group from its
                           ///< messages.
  const GroupIndex groups;
  const Queues numbers;
  /// Beside the state of a row: a queue waits for its end.
  static constexpr uint8_t hasWaiters = 0x80;
  std::vector<uint8_t> states;         ///< By row.
  std::vector<uint32_t> issued;        ///< By row: as issuePredecessors().
  std::vector<uint32_t> bufferFreedBy; ///< By row, with a capacity: of a send
                                       ///< the receive that makes room for it,
  std::vector<uint32_t> sendAwaiting;  ///< and of that the send.

private:
  /// Whether a row has a queue beside those of compute actions and messages.
  bool hasQueueOfItsOwn(ActionId row) const {
    return hasLanes && hasOwnQueue(program.kindOf(row), layout);
  }
  template <class Clock>
  Time sendLead(ActionId row, uint32_t issuedAfter, const Clock &clock) const;
  std::optional<ActionId> producerOf(const Action &action, StageId stage,
                                     uint8_t slotBit);
  bool isDataKnownReady(ActionId row);
  void recordData(ActionId row);
  uint8_t &pairOf(const Action &action, StageId stage) {
    return pairs[pairNumbers(action.pipe, stage, action.microbatch)];
  }
  template <class Clock, class Visit>
  bool visitInput(ActionId row, const Action &action, StageId source,
                  uint8_t slotBit, const Clock &clock, const Visit &visit);

  /// By stage and microbatch: the slots whose action has ended, and, shifted,
  /// those that were received.
  std::vector<uint8_t> pairs;
  const PairNumbering pairNumbers;
  std::optional<MissingDependence> firstMissing;
  bool whole = true;
};

inline EventNeeds::EventNeeds(const Program &program, const ProgramIndex &index,
                              const MessageIndex *messages,
                              ExecutionModel model, bool recordsData)
    : program(program), index(index), messages(messages), model(model),
      layout(model.transport        ? model.transport->layout
             : model.inProgramOrder ? QueueLayout::One
                                    : QueueLayout::StreamPerEdge),
      hasStreams(model.transport && model.transport->hasStreams()),
      hasLanes(!model.inProgramOrder && program.kinds().hasAsync()),
      skipsMessages(!model.transport &&
                    (!model.inProgramOrder || !program.kinds().hasDeclared())),
      splitsGroups(hasStreams || skipsMessages), groups(program),
      numbers(program, model.transport ? messages : nullptr, layout),
      states(program.size(), Waiting), pairNumbers(program.pipes()) {
  if (hasStreams || hasLanes)
    issued = issuePredecessors(program, layout);
  if (model.transport && model.transport->sendWait == SendWait::Capacity) {
    bufferFreedBy =
        bufferFreeingReceives(program, *messages, model.transport->capacity);
    sendAwaiting.resize(program.size(), none);
    for (ActionId row : program.rows())
      if (bufferFreedBy[row.value] != none)
        sendAwaiting[bufferFreedBy[row.value]] = row.value;
  }
  if (recordsData && !program.kinds().hasDeclared())
    pairs.resize(pairNumbers.size());
}

/// Whether the data that a row reads is there; false where that takes a closer
/// look.
inline bool EventNeeds::isDataKnownReady(ActionId row) {
  const KindInfo &info = program.kindOf(row);
  if (info.isRecv() || (!model.transport && !info.isCompute()))
    return true;
  Action action = program[row];
  uint8_t own = pairOf(action, action.stage);
  if (!info.isCompute())
    return own & info.defines;
  const Pipe &pipe = program.pipe(action.pipe);
  if ((own & info.needs) != info.needs || pipe.slices != 1)
    return false;
  for (uint8_t slotBit : slotsIn(info.defines & slot::crossStage)) {
    auto sources = index.sourcesOf(action.pipe, action.stage, slotBit);
    if (sources.empty())
      continue;
    bool isLocal = !model.transport || pipe.rankOfStage[sources[0].value] ==
                                           pipe.rankOfStage[action.stage.value];
    uint8_t arrived = isLocal ? pairOf(action, sources[0]) : own >> slot::count;
    if (sources.size() != 1 || !(arrived & slotBit))
      return false;
  }
  return true;
}

inline void EventNeeds::recordData(ActionId row) {
  const KindInfo &info = program.kindOf(row);
  if (info.isSend() || (!info.isCompute() && !model.transport))
    return;
  Action action = program[row];
  pairOf(action, action.stage) |=
      info.isCompute() ? info.defines : info.defines << slot::count;
}

/// Who makes a slot for `action`; nothing, and noted, when nobody does.
inline std::optional<ActionId>
EventNeeds::producerOf(const Action &action, StageId stage, uint8_t slotBit) {
  auto maker = index.definer(action.pipe, stage, action.microbatch, slotBit);
  whole &= maker.has_value();
  return maker;
}

/// Both ends of the message of a send or receive; nothing when it never ends,
/// since the message lacks an end or the row repeats it.
inline std::optional<EventNeeds::Ends> EventNeeds::endsOf(ActionId row) const {
  auto other = messages->partner(row);
  if (!other)
    return std::nullopt;
  return program.kindOf(row).isSend() ? Ends{row, *other} : Ends{*other, row};
}

/// What a message waits for that has started.
inline std::optional<Need> EventNeeds::endNeed(ActionId row, Ends ends) const {
  if (row == ends.recv || model.transport->sendWait == SendWait::Receive)
    return Need{NeedKind::Start, ends.other(row)};
  if (uint32_t room = bufferFreedBy.empty() ? none : bufferFreedBy[row.value];
      room != none)
    return Need{NeedKind::Buffer, ActionId(room)};
  return std::nullopt;
}

/// Calls `visit(need, delay)` for what a row of a unit waits for before it
/// starts, until that gives false: the row before it in its queue, then data,
/// of which rules may ask for much: they go on from `rule`, which is moved
/// along. It goes on `delay` after the end of each.
template <class Clock, class Visit>
bool EventNeeds::forEachNeed(ActionId row, uint32_t before, uint32_t &rule,
                             const Clock &clock, const Visit &visit) {
  if (uint32_t other = issued.empty() ? none : issued[row.value];
      other != none && !visit(Need{NeedKind::Issue, ActionId(other)},
                              -sendLead(row, other, clock)))
    return false;
  if (before != none && !visit(Need{NeedKind::Queue, ActionId(before)}, 0))
    return false;
  if (!pairs.empty() && isDataKnownReady(row))
    return true;
  auto visitData = [&](std::optional<ActionId> maker, Time delay = 0) {
    return !maker || visit(Need{NeedKind::Data, *maker}, delay);
  };
  auto visitRules = [&] {
    auto rules = index.rules().neededBy(row);
    for (; rule != rules.size(); ++rule)
      // Messages that are left out have no end.
      if (isInQueues(rules[rule]) && !visitData(rules[rule]))
        return false;
    return true;
  };
  const KindInfo &info = program.kindOf(row);
  if (!info.isCompute() && !visitRules())
    return false;
  if (info.isRecv() || (!info.isCompute() && !model.transport))
    return true;
  Action action = program[row];
  if (!info.isCompute()) {
    auto maker = producerOf(action, action.stage, info.mainSlot());
    return !maker || visitData(maker, -clock.early(*maker));
  }
  for (uint8_t slotBit : slotsIn(info.needs))
    if (!visitData(producerOf(action, action.stage, slotBit)))
      return false;
  for (uint8_t slotBit : slotsIn(info.defines)) {
    for (StageId source : index.sourcesOf(action.pipe, action.stage, slotBit))
      if (!visitInput(row, action, source, slotBit, clock, visit))
        return false;
    auto slice =
        program.pipe(action.pipe).sliceBefore(action.microbatch, slotBit);
    if (slice &&
        !visitData(index.definer(action.pipe, action.stage, *slice, slotBit)))
      return false;
  }
  return visitRules();
}

/// How long before the end of the row before it, or of its group, a send
/// is issued.
template <class Clock>
Time EventNeeds::sendLead(ActionId row, uint32_t issuedAfter,
                          const Clock &clock) const {
  if (!clock.hasHookOffsets())
    return 0;
  Action action = program[row];
  const KindInfo &info = program.kindOf(action);
  if (!info.isSend())
    return 0;
  auto maker = index.definer(action.pipe, action.stage, action.microbatch,
                             info.mainSlot());
  return maker && groups[*maker].from == groups[ActionId(issuedAfter)].from
             ? clock.early(*maker)
             : 0;
}

template <class Clock, class Visit>
bool EventNeeds::visitInput(ActionId row, const Action &action, StageId source,
                            uint8_t slotBit, const Clock &clock,
                            const Visit &visit) {
  const Pipe &pipe = program.pipe(action.pipe);
  bool isLocal =
      pipe.rankOfStage[source.value] == pipe.rankOfStage[action.stage.value];
  if (isLocal || !model.transport) {
    auto maker = producerOf(action, source, slotBit);
    return !maker || visit(Need{NeedKind::Data, *maker},
                           (isLocal ? 0 : clock.edgeTime(action, source)) -
                               clock.early(*maker) - clock.late(row));
  }
  auto message = messages->find(action.pipe, source, action.stage,
                                action.microbatch, slotBit);
  auto recv = message ? messages->recv(*message) : std::nullopt;
  if (recv)
    return visit(Need{NeedKind::Data, *recv}, -clock.late(row));
  if (!firstMissing)
    firstMissing = {row, source, slotBit};
  whole = false;
  return true;
}
} // namespace ppcc
