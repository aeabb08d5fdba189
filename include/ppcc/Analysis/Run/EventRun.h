// Executes the event graph of a program: decides whether all ranks terminate
// and, with a clock, computes when each row starts and ends.
//
// Algorithm: topological sorting (A. B. Kahn, CACM 5(11), 1962) of a timed
// event graph, also called marked graph (Commoner, Holt, Even, Pnueli 1971).
// The graph is not stored. A queue watches one unmet need at a time; the end of
// a row wakes the queues that watch it.
// Invariant: the moment of an event is the maximum over its needs, so it does
// not depend on the order in which queues run. If rows are left, each queue
// waits for an event that cannot happen: its waits lead into a cycle, or to a
// message that lacks one end.
// Cost: O(rows) if rows have few needs. A queue that is woken visits the needs
// of its row again, so k inputs can cost k^2 visits. Memory: see EventRun.
// Example, transport `rendezvous`, F = 1, latency 1:
//   rank 0: 0F0 0SEND_F0    F runs from 0 to 1, SEND starts at 1
//   rank 1: 1RECV_F0 1F0    RECV starts at 0 and waits for the start of SEND
// Both ends of the message end at max(1, 0) + 1 = 2; 1F0 runs from 2 to 3.
#pragma once

#include "ppcc/Analysis/Run/EventClocks.h"
#include "ppcc/Analysis/Run/EventNeeds.h"

namespace ppcc {

/// Kahn's algorithm over the queues of the ranks.
///
/// Each action has a start and an end. A unit is what starts at once and ends
/// at once: an action, the compute actions of a group or its communication; on
/// one queue all of a group. The queue of its first row runs it; it waits for
/// one event at a time. O(actions); 5 bytes an action, on streams 9, and 17
/// with more than two queues a rank.
///
/// A clock gives each event its moment, the latest of what it waits for: so the
/// order in which queues are looked at does not change it.
template <class Clock> class EventRun : public EventNeeds {
public:
  EventRun(const Program &program, const ProgramIndex &index,
           const MessageIndex *messages, ExecutionModel model,
           Clock clock = {});

  /// Runs all that can run; false when something is left.
  bool run();

protected:
  using Moment = typename Clock::Moment;
  /// A queue, with the unit at its head.
  struct Queue {
    uint32_t begin = none;      ///< The first row of the unit; none at the end.
    uint32_t end = 0;           ///< One past the last row of its group.
    uint32_t member = 0;        ///< The first row whose needs are not all met,
    uint32_t rule = 0;          ///< and the first of its rules.
    uint32_t open = 0;          ///< Members of the unit that run.
    uint32_t last = none;       ///< The row before the unit.
    uint32_t owner = 0;         ///< The queue that runs the unit.
    uint32_t nextWaiter = none; ///< Waits for the same end.
    bool waits = false, runs = false;
    [[no_unique_address]] Moment free;    ///< The end of the unit before.
    [[no_unique_address]] Moment ready;   ///< When all needs are met.
    [[no_unique_address]] Moment unitEnd; ///< Of what does not run any more.
  };
  template <class Visit>
  void forEachMember(const Queue &queue, Visit visit) const {
    for (ActionId row(queue.begin), end(queue.end); row != end; ++row.value)
      if (isMember(row, ActionId(queue.begin)))
        visit(row);
  }
  /// Whether the unit of a row may have several queues.
  bool spansQueues(uint32_t row) const {
    return !queueOfRow.empty() && !isCompute(ActionId(row));
  }
  /// The row before one in its queue, where its unit has several queues.
  uint32_t before(ActionId row, uint32_t unit) const {
    if (!spansQueues(row.value))
      return none;
    if (!previous.empty())
      return previous[row.value];
    const Queue &own = queues[queueOfRow[row.value]];
    return own.begin == unit ? own.last : own.begin;
  }

  Clock clock;
  /// By row: the one before it in its queue, when that is asked for.
  std::vector<uint32_t> previous;

private:
  // The queues.
  void linkQueues();
  uint32_t firstInQueue(uint32_t number, ActionId from) const;
  uint32_t nextInQueue(uint32_t number, ActionId row) const {
    return next.empty() ? firstInQueue(number, ActionId(queues[number].end))
                        : next[row.value];
  }
  uint32_t ownerOf(ActionId row) const;
  void enter(uint32_t number, uint32_t row);
  void advance(uint32_t number, ActionId row, Moment at);

  // The run.
  void runQueue(uint32_t number);
  bool isReady(uint32_t number);
  bool waitFor(uint32_t number, Need need, Time delay);
  void start(uint32_t number);
  void join(uint32_t collective, uint32_t number, ActionId row);
  void post(ActionId row);
  Moment startOf(ActionId row) const;
  Moment endOf(ActionId row, Ends ends, Time duration) const;
  void complete(ActionId row, Moment at);
  void close(uint32_t number);
  void finish(uint32_t number);
  void end(ActionId row, Moment at);

  /// By row, the last queue that began to wait for its end, where one did: not
  /// touched else, as most rows are not awaited.
  std::unique_ptr<uint32_t[]> lastWaiter;
  std::vector<uint32_t> next;       ///< By row, in its queue;
  std::vector<uint32_t> queueOfRow; ///< and that queue: where streams or lanes
                                    ///< are many.
  struct CollectiveState {
    uint32_t open = 0;                   ///< Members that have not started.
    [[no_unique_address]] Moment latest; ///< Of those that have.
  };
  std::vector<CollectiveState> collectives;
  std::vector<Queue> queues;
  SmallVector<uint32_t> readyQueues;
  SmallVector<ActionId> posted;
  uint32_t running = none;
};

template <class Clock>
EventRun<Clock>::EventRun(const Program &program, const ProgramIndex &index,
                          const MessageIndex *messages, ExecutionModel model,
                          Clock clock)
    : EventNeeds(program, index, messages, model, !Clock::isTimed),
      clock(std::move(clock)),
      lastWaiter(std::make_unique_for_overwrite<uint32_t[]>(program.size())) {
  if (!model.inProgramOrder)
    for (uint32_t collective = 0; collective != index.rules().numCollectives();
         ++collective)
      collectives.emplace_back().open =
          index.rules().members(collective).size();
  if (model.inProgramOrder)
    queues.resize(program.ranksBegun());
  else
    queues.resize(numbers.size());
  bool isSimple = layout == QueueLayout::One || layout == QueueLayout::Stream ||
                  !model.transport;
  if (hasLanes || !isSimple)
    linkQueues();
  else
    for (uint32_t number = 0; number != queues.size(); ++number)
      enter(number,
            firstInQueue(number,
                         program.begin(RankId(number % program.ranksBegun()))));
}

template <class Clock> void EventRun<Clock>::linkQueues() {
  std::vector<uint32_t> heads(queues.size(), none);
  next.assign(program.size(), none);
  queueOfRow.assign(program.size(), none);
  for (RankId rank : program.ranks())
    for (ActionId row = program.end(rank); row != program.begin(rank);) {
      --row.value;
      if (!isInQueues(row))
        continue;
      uint32_t number = queueOf(row, rank);
      queueOfRow[row.value] = number;
      next[row.value] = std::exchange(heads[number], row.value);
    }
  for (uint32_t number = 0; number != queues.size(); ++number)
    enter(number, heads[number]);
}

/// The first row of a queue from `from` on, where queues are not linked.
template <class Clock>
uint32_t EventRun<Clock>::firstInQueue(uint32_t number, ActionId from) const {
  RankId rank(number % program.ranksBegun());
  bool ofMessages = number >= program.ranksBegun();
  for (; from != program.end(rank); ++from.value)
    if (isInQueues(from) && (!hasStreams || isCompute(from) != ofMessages))
      return from.value;
  return none;
}

/// Puts the unit of `row` at the head of a queue.
template <class Clock>
void EventRun<Clock>::enter(uint32_t number, uint32_t row) {
  Queue &queue = queues[number];
  queue.runs = false;
  queue.begin = row;
  if (row == none)
    return;
  auto [from, to] = groups[ActionId(row)];
  queue.end = to.value;
  queue.owner = number;
  if (spansQueues(row)) {
    while (isCompute(from))
      ++from.value;
    queue.begin = from.value;
    queue.owner = queueOfRow[from.value];
  }
  queue.member = queue.begin;
  queue.rule = 0;
  queue.ready = queue.free;
}

/// The queue that runs the unit of a row.
template <class Clock> uint32_t EventRun<Clock>::ownerOf(ActionId row) const {
  if (!queueOfRow.empty())
    return queues[queueOfRow[row.value]].owner;
  Action action = program[row];
  RankId rank = program.rankOfStage(action.pipe, action.stage);
  if (row < program.begin(rank) || row >= program.end(rank))
    rank = program.rankOf(row);
  return rank.value +
         (hasStreams && !isCompute(row) ? program.ranksBegun() : 0);
}

template <class Clock> bool EventRun<Clock>::run() {
  for (uint32_t queue = 0; queue != queues.size(); ++queue) {
    readyQueues.push_back(queue);
    while (!readyQueues.empty())
      runQueue(readyQueues.pop_back_val());
  }
  return llvm::all_of(queues,
                      [](const Queue &queue) { return queue.begin == none; });
}

template <class Clock> void EventRun<Clock>::runQueue(uint32_t number) {
  Queue &queue = queues[number];
  running = number;
  while (queue.begin != none && !queue.waits && !queue.runs &&
         queue.owner == number && isReady(number))
    start(number);
  running = none;
}

template <class Clock> bool EventRun<Clock>::isReady(uint32_t number) {
  Queue &queue = queues[number];
  for (; queue.member != queue.end; ++queue.member, queue.rule = 0)
    if (ActionId row(queue.member);
        isMember(row, ActionId(queue.begin)) &&
        !forEachNeed(row, before(row, queue.begin), queue.rule, clock,
                     [&](Need need, Time delay) {
                       return waitFor(number, need, delay);
                     }))
      return false;
  return true;
}

/// Takes the end of an action, plus `delay`, as something that the unit at the
/// head waits for. False when it has not come yet; the queue is woken then.
template <class Clock>
bool EventRun<Clock>::waitFor(uint32_t number, Need need, Time delay) {
  Queue &queue = queues[number];
  if (met(need)) {
    clock.wait(queue.ready, need.row, delay);
    return true;
  }
  uint32_t &waiter = lastWaiter[need.row.value];
  bool isFirst = !(states[need.row.value] & hasWaiters);
  states[need.row.value] |= hasWaiters;
  queue.nextWaiter = isFirst ? none : waiter;
  waiter = number;
  queue.waits = true;
  return false;
}

template <class Clock> void EventRun<Clock>::start(uint32_t number) {
  Queue &queue = queues[number];
  ActionId begin(queue.begin);
  const KindInfo &info = program.kindOf(begin);
  auto collective = info.isCollective() && !collectives.empty()
                        ? index.rules().collectiveOf(begin)
                        : std::nullopt;
  queue.runs = true;
  queue.open = 1 + collective.has_value(); // One for what is no message.
  queue.unitEnd = queue.ready;
  if (collective)
    ; // It takes its time once all have come.
  else if ((info.isCollective() || info.isAsync()) && !model.inProgramOrder)
    queue.unitEnd = clock.plus(queue.ready, clock.time(begin));
  else if (!hasStreams || info.isCompute())
    queue.unitEnd =
        clock.plus(queue.ready, clock.time(begin, ActionId(queue.end)));
  bool posts = model.transport && (groups.hasGroups() || !info.isCompute());
  forEachMember(queue, [&](ActionId row) {
    setState(row, Started);
    clock.setStart(row, queue.ready);
    queue.open += posts && !isCompute(row);
  });
  if (collective)
    join(*collective, number, begin);
  else if (queue.open != 1)
    forEachMember(queue, [&](ActionId row) {
      if (!isCompute(row))
        post(row);
    });
  close(number);
}

/// Lets a collective go on whose member at the head of a queue has started; all
/// begin with the last.
template <class Clock>
void EventRun<Clock>::join(uint32_t collective, uint32_t number, ActionId row) {
  CollectiveState &state = collectives[collective];
  Moment start = clock.startOf(row, queues[number].ready);
  state.latest = clock.laterOrFirst(state.latest, start);
  if (--state.open == 0)
    for (ActionId member : index.rules().members(collective))
      complete(member, clock.plus(state.latest, clock.time(member)));
}

/// Lets a message go on one end of which has started, and those that wait for
/// the room that this makes.
template <class Clock> void EventRun<Clock>::post(ActionId row) {
  for (posted.push_back(row); !posted.empty();) {
    auto ends = endsOf(posted.back());
    Time duration = clock.message(program[posted.pop_back_val()]);
    if (!ends)
      continue;
    std::optional<Moment> at[2];
    for (bool isRecv : {false, true}) {
      ActionId end = isRecv ? ends->recv : ends->send;
      auto need = endNeed(end, *ends);
      if (state(end) == Started && (!need || met(*need)))
        at[isRecv] = endOf(end, *ends, duration);
    }
    if (at[0])
      complete(ends->send, *at[0]);
    if (at[1])
      complete(ends->recv, *at[1]);
    if (uint32_t send =
            sendAwaiting.empty() ? none : sendAwaiting[ends->recv.value];
        at[1] && send != none && state(ActionId(send)) == Started)
      posted.push_back(ActionId(send));
  }
}

template <class Clock>
typename EventRun<Clock>::Moment EventRun<Clock>::startOf(ActionId row) const {
  if constexpr (Clock::isTimed)
    return clock.startOf(row, queues[ownerOf(row)].ready);
  return {};
}

/// When an end of a message that has started is through; it is on its way for
/// a time. A send is stored once there is room; a receive that is there before
/// makes that itself.
template <class Clock>
typename EventRun<Clock>::Moment EventRun<Clock>::endOf(ActionId row, Ends ends,
                                                        Time duration) const {
  if constexpr (!Clock::isTimed)
    return {};
  Moment start = startOf(row);
  if (model.transport->sendWait == SendWait::Receive)
    return clock.plus(clock.later(startOf(ends.send), startOf(ends.recv)),
                      duration);
  if (row == ends.recv)
    return clock.later(start, clock.plus(state(ends.send) == Started
                                             ? endOf(ends.send, ends, duration)
                                             : clock.completionOf(ends.send),
                                         duration));
  auto need = endNeed(row, ends);
  return need && met(*need) ? clock.later(start, clock.completionOf(need->row))
                            : start;
}

/// Notes that a member of a running unit is through.
template <class Clock> void EventRun<Clock>::complete(ActionId row, Moment at) {
  uint32_t number = ownerOf(row);
  setState(row, Completed);
  clock.setCompletion(row, at);
  queues[number].unitEnd = clock.later(queues[number].unitEnd, at);
  close(number);
}

template <class Clock> void EventRun<Clock>::close(uint32_t number) {
  if (--queues[number].open == 0)
    finish(number);
}

/// Ends the unit at the head of a queue.
template <class Clock> void EventRun<Clock>::finish(uint32_t number) {
  ActionId last;
  forEachMember(queues[number], [&](ActionId row) {
    end(row, queues[number].unitEnd);
    last = row;
  });
  if (!spansQueues(queues[number].begin))
    return advance(number, last, queues[number].unitEnd);
  const Queue unit = queues[number];
  forEachMember(unit, [&](ActionId row) {
    if (next[row.value] == none || next[row.value] >= unit.end)
      advance(queueOfRow[row.value], row, unit.unitEnd);
  });
}

template <class Clock> void EventRun<Clock>::end(ActionId row, Moment at) {
  clock.setEnd(row, at);
  bool hadWaiters = states[row.value] & hasWaiters;
  states[row.value] = Ended;
  recordResult(row);
  for (uint32_t number = hadWaiters ? lastWaiter[row.value] : none;
       number != none; number = queues[number].nextWaiter) {
    queues[number].waits = false;
    readyQueues.push_back(number);
  }
}

/// Goes to the unit after that of `row`, which ended.
template <class Clock>
void EventRun<Clock>::advance(uint32_t number, ActionId row, Moment at) {
  queues[number].free = clock.freeAfter(at, row);
  queues[number].last = row.value;
  enter(number, nextInQueue(number, row));
  if (number != running)
    readyQueues.push_back(number);
}

} // namespace ppcc
