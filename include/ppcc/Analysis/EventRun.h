// Runs a program, each action as soon as it can: the rules of who waits for
// whom, for runs with a clock and without one.
#pragma once

#include "ppcc/Analysis/GroupIndex.h"
#include "ppcc/Analysis/Queues.h"

#include "llvm/ADT/SmallVector.h"

namespace ppcc {

/// Why an action cannot start or end.
enum class NeedKind : uint8_t {
  Queue, ///< The action before it in its queue must have ended.
  Issue, ///< So must the compute action before it on its rank.
  Data,  ///< So must the action that makes, or receives, what it reads.
  Start, ///< The other end of its message, or all that meet with it, must have
         ///< started.
  Room,  ///< A receive must be through, so that the send can be stored.
};

/// What an action waits for: a row of another action.
struct Need {
  NeedKind kind = NeedKind::Queue;
  ActionId row;
};

/// What messages do to the actions of a program.
struct Surroundings {
  const Transport *transport = nullptr; ///< None: actions wait for data alone.
  /// Without a transport: each rank runs all its rows in one line, messages in
  /// no time; else its lanes run side by side, and messages are left out.
  bool inLine = false;
};

/// The clock of a run that asks only what can happen.
struct NoClock {
  static constexpr bool isOn = false;
  struct Moment {};
  void begin(ActionId, Moment) {}
  void complete(ActionId, Moment) {}
  void end(ActionId, Moment) {}
  Moment started(ActionId, Moment) const { return {}; }
  Moment completed(ActionId) const { return {}; }
  void wait(Moment &, ActionId, Time) const {}
  static Moment free(Moment, ActionId) { return {}; }
  static Moment later(Moment, Moment) { return {}; }
  static Moment joined(Moment, Moment) { return {}; }
  static Moment after(Moment, Time) { return {}; }
  bool hasSlack() const { return false; }
  Time early(ActionId) const { return 0; }
  Time late(ActionId) const { return 0; }
  Time way(const Action &, StageId) const { return 0; }
  Time message(const Action &) const { return 0; }
  Time time(ActionId) const { return 0; }
  Time time(ActionId, ActionId) const { return 0; }
};

/// Kahn's algorithm over the queues of the ranks.
///
/// Each action has a start and an end. What they wait for is not stored: it
/// follows from the position of a row and from the indices. A unit is what
/// starts at once and ends at once: an action, the compute actions of a group
/// or its communication; on one queue all of a group. The queue of its first
/// row runs it; it waits for one event at a time. O(actions); 5 bytes an
/// action, on streams 9, and 17 with more than two queues a rank.
///
/// A clock gives each event its moment, the latest of what it waits for: so the
/// order in which queues are looked at does not change it.
template <class Clock> class EventRun {
public:
  EventRun(const Program &program, const ProgramIndex &index,
           const MessageIndex *messages, Surroundings around, Clock clock = {});

  /// Runs all that can run; false when something is left.
  bool run();

  /// A compute action that needs a message without a receive.
  struct Lack {
    ActionId row;
    StageId source;
    uint8_t slotBit;
  };
  /// The first one met in run(), which does not wait for it.
  std::optional<Lack> lack() const { return firstLack; }
  /// Whether all that was read is made somewhere.
  bool isWhole() const { return whole; }

protected:
  using Moment = typename Clock::Moment;
  static constexpr uint32_t none = noRow;
  enum State : uint8_t { Waiting, Started, Completed, Ended };

  /// A queue, with the unit at its head.
  struct Queue {
    uint32_t begin = none;   ///< The first row of the unit; none at the end.
    uint32_t end = 0;        ///< One past the last row of its group.
    uint32_t member = 0;     ///< The first row whose needs are not all met,
    uint32_t need = 0;       ///< and the first of its data.
    uint32_t open = 0;       ///< Members of the unit that run.
    uint32_t last = none;    ///< The row before the unit.
    uint32_t owner = 0;      ///< The queue that runs the unit.
    uint32_t nextWaiter = 0; ///< Waits for the same end, like the first.
    bool waits = false, runs = false;
    [[no_unique_address]] Moment free;    ///< The end of the unit before.
    [[no_unique_address]] Moment ready;   ///< When all needs are met.
    [[no_unique_address]] Moment unitEnd; ///< Of what does not run any more.
  };
  /// Both ends of a message.
  struct Ends {
    ActionId send, recv;
    ActionId other(ActionId row) const { return row == send ? recv : send; }
  };

  State state(ActionId row) const { return states[row.value]; }
  bool met(Need need) const {
    static constexpr State enough[] = {/*Queue=*/Ended, /*Issue=*/Ended,
                                       /*Data=*/Ended,
                                       /*Start=*/Started, /*Room=*/Completed};
    return state(need.row) >= enough[static_cast<size_t>(need.kind)];
  }
  bool isCompute(ActionId row) const { return program.kindOf(row).isCompute(); }
  /// Whether a row has a queue beside those of compute actions and messages.
  bool isApart(ActionId row) const {
    return hasLanes && hasOwnQueue(program.kindOf(row), layout);
  }
  /// Whether `row`, of the same group, belongs to the unit of `begin`.
  bool isMember(ActionId row, ActionId begin) const {
    if (row == begin)
      return true;
    if (hasLanes && (isApart(row) || isApart(begin)))
      return false;
    return !splitsGroups || isCompute(row) == isCompute(begin);
  }
  template <class Visit>
  void forEachMember(const Queue &queue, Visit visit) const {
    for (ActionId row(queue.begin), end(queue.end); row != end; ++row.value)
      if (isMember(row, ActionId(queue.begin)))
        visit(row);
  }
  bool isInQueues(ActionId row) const {
    return !skipsMessages || isCompute(row);
  }
  uint32_t queueOf(ActionId row, RankId rank) const {
    return around.inLine ? rank.value : numbers.of(program[row], rank);
  }

  // What rows wait for.
  template <class Visit>
  bool forEachNeed(ActionId row, uint32_t unit, uint32_t &number,
                   const Visit &visit);
  std::optional<Ends> endsOf(ActionId row) const;
  std::optional<Need> endNeed(ActionId row, Ends ends) const;

  const Program &program;
  const ProgramIndex &index;
  const MessageIndex *messages;
  const Surroundings around;
  const QueueLayout layout;
  const bool hasStreams, hasLanes;
  /// Messages keep no action waiting, nor are there rules that name them.
  const bool skipsMessages;
  const bool splitsGroups; ///< The compute actions of a group from its
                           ///< messages.
  Clock clock;
  const GroupIndex groups;
  const Queues numbers;
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
  bool isSpread(uint32_t row) const {
    return !queueOfRow.empty() && !isCompute(ActionId(row));
  }
  uint32_t ownerOf(ActionId row) const;
  void enter(uint32_t number, uint32_t row);
  void advance(uint32_t number, ActionId row, Moment at);

  // What rows wait for.
  uint32_t before(ActionId row, uint32_t unit) const {
    if (!previous.empty())
      return previous[row.value];
    const Queue &own = queues[queueOfRow[row.value]];
    return own.begin == unit ? own.last : own.begin;
  }
  Time headStart(ActionId row, uint32_t issuedAfter) const;
  std::optional<ActionId> makerOf(const Action &action, StageId stage,
                                  uint8_t slotBit);
  bool surelyHasData(ActionId row);
  void handOn(ActionId row);
  uint8_t &pairOf(const Action &action, StageId stage) {
    const Pipe &pipe = program.pipe(action.pipe);
    return pairs[firstPair[action.pipe.value] +
                 size_t(stage.value) * pipe.numMicrobatches +
                 (action.microbatch - pipe.firstMicrobatch)];
  }
  template <class Visit>
  bool visitInput(ActionId row, const Action &action, StageId source,
                  uint8_t slotBit, const Visit &visit);

  // The run.
  void runQueue(uint32_t number);
  bool isReady(uint32_t number);
  bool await(uint32_t number, Need need, Time delay);
  void start(uint32_t number);
  void join(uint32_t meeting, uint32_t number, ActionId row);
  void post(ActionId row);
  Moment startOf(ActionId row) const;
  Moment endOf(ActionId row, Ends ends, Time way) const;
  void complete(ActionId row, Moment at);
  void close(uint32_t number);
  void finish(uint32_t number);
  void end(ActionId row, Moment at);

  std::vector<State> states;         ///< By row,
  std::vector<uint32_t> firstWaiter; ///< and one more than a queue that waits
                                     ///< for its end, or 0.
  std::vector<uint32_t> issued;      ///< By row: as issuedBehind().
  std::vector<uint32_t> rooms;       ///< By row, with a capacity: of a send the
                                     ///< receive that makes room for it,
  std::vector<uint32_t> roomFor;     ///< and of that the send.
  std::vector<uint32_t> next;        ///< By row, in its queue;
  std::vector<uint32_t> queueOfRow;  ///< and that queue: where streams or lanes
                                     ///< are many.
  struct MeetingState {
    uint32_t open = 0;                   ///< Members that have not started.
    [[no_unique_address]] Moment latest; ///< Of those that have.
  };
  std::vector<MeetingState> meetings;
  std::vector<Queue> queues;
  /// Without a clock. By stage and microbatch: the slots whose action has
  /// ended, and, shifted, those that were received.
  std::vector<uint8_t> pairs;
  std::vector<size_t> firstPair; ///< Of each pipe, in the numbering of all.
  llvm::SmallVector<uint32_t> awake;
  llvm::SmallVector<ActionId> posted;
  uint32_t running = none;
  std::optional<Lack> firstLack;
  bool whole = true;
};

template <class Clock>
EventRun<Clock>::EventRun(const Program &program, const ProgramIndex &index,
                          const MessageIndex *messages, Surroundings around,
                          Clock clock)
    : program(program), index(index), messages(messages), around(around),
      layout(around.transport ? around.transport->layout
             : around.inLine  ? QueueLayout::One
                              : QueueLayout::StreamPerEdge),
      hasStreams(around.transport && around.transport->hasStreams()),
      hasLanes(!around.inLine && program.kinds().hasBeside()),
      skipsMessages(!around.transport &&
                    (!around.inLine || !program.kinds().hasDeclared())),
      splitsGroups(hasStreams || skipsMessages), clock(std::move(clock)),
      groups(program),
      numbers(program, around.transport ? messages : nullptr, layout),
      states(program.size(), Waiting), firstWaiter(program.size()) {
  if (!around.inLine)
    for (uint32_t meeting = 0; meeting != index.rules().numMeetings();
         ++meeting)
      meetings.emplace_back().open = index.rules().members(meeting).size();
  if (hasStreams || hasLanes)
    issued = issuedBehind(program, layout);
  if (around.transport && around.transport->sendWait == SendWait::Capacity) {
    rooms = roomMakers(program, *messages, around.transport->capacity);
    roomFor.resize(program.size(), none);
    for (ActionId row : program.rows())
      if (rooms[row.value] != none)
        roomFor[rooms[row.value]] = row.value;
  }
  if (around.inLine)
    queues.resize(program.ranksBegun());
  else
    queues.resize(numbers.size());
  bool isSimple = layout == QueueLayout::One || layout == QueueLayout::Stream ||
                  !around.transport;
  for (const Pipe &pipe : program.pipes()) {
    firstPair.push_back(pairs.size());
    if (!Clock::isOn && !program.kinds().hasDeclared())
      pairs.resize(pairs.size() +
                   size_t(pipe.numStages()) * pipe.numMicrobatches);
  }
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
  if (isSpread(row)) {
    while (isCompute(from))
      ++from.value;
    queue.begin = from.value;
    queue.owner = queueOfRow[from.value];
  }
  queue.member = queue.begin;
  queue.need = 0;
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
    awake.push_back(queue);
    while (!awake.empty())
      runQueue(awake.pop_back_val());
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
  for (; queue.member != queue.end; ++queue.member, queue.need = 0)
    if (ActionId row(queue.member);
        isMember(row, ActionId(queue.begin)) &&
        !forEachNeed(row, queue.begin, queue.need, [&](Need need, Time delay) {
          return await(number, need, delay);
        }))
      return false;
  return true;
}

/// Takes the end of an action, plus `delay`, as something that the unit at the
/// head waits for. False when it has not come yet; the queue is woken then.
template <class Clock>
bool EventRun<Clock>::await(uint32_t number, Need need, Time delay) {
  Queue &queue = queues[number];
  if (met(need)) {
    clock.wait(queue.ready, need.row, delay);
    return true;
  }
  queue.nextWaiter = std::exchange(firstWaiter[need.row.value], number + 1);
  queue.waits = true;
  return false;
}

/// Calls `visit(need, delay)` for what a row of a unit waits for before it
/// starts, until that gives false: its turn, then data from `number` on, which
/// is moved along. It goes on `delay` after the end of each.
template <class Clock>
template <class Visit>
bool EventRun<Clock>::forEachNeed(ActionId row, uint32_t unit, uint32_t &number,
                                  const Visit &visit) {
  if (uint32_t other = issued.empty() ? none : issued[row.value];
      other != none &&
      !visit(Need{NeedKind::Issue, ActionId(other)}, -headStart(row, other)))
    return false;
  if (isSpread(row.value))
    if (uint32_t other = before(row, unit);
        other != none && !visit(Need{NeedKind::Queue, ActionId(other)}, 0))
      return false;
  if (number == 0 && !pairs.empty() && surelyHasData(row))
    return true;
  auto rules = index.rules().neededBy(row);
  uint32_t counted = 0;
  auto visitRules = [&] {
    for (; number - counted < rules.size(); ++number)
      // Messages that are left out have no end.
      if (ActionId needed = rules[number - counted];
          isInQueues(needed) && !visit(Need{NeedKind::Data, needed}, 0))
        return false;
    counted += rules.size();
    return true;
  };
  const KindInfo &info = program.kindOf(row);
  if (!info.isCompute() && !visitRules())
    return false;
  if (info.isRecv() || (!info.isCompute() && !around.transport))
    return true;
  Action action = program[row];
  if (!info.isCompute()) {
    auto maker = makerOf(action, action.stage, info.mainSlot());
    return !maker || visit(Need{NeedKind::Data, *maker}, -clock.early(*maker));
  }
  for (unsigned rest = info.needs; rest; rest &= rest - 1, ++counted) {
    if (number != counted)
      continue;
    auto maker = makerOf(action, action.stage, rest & -rest);
    if (maker && !visit(Need{NeedKind::Data, *maker}, 0))
      return false;
    ++number;
  }
  for (uint8_t slotBit : slotsIn(info.defines)) {
    auto sources = index.sourcesOf(action.pipe, action.stage, slotBit);
    for (; number - counted < sources.size(); ++number)
      if (!visitInput(row, action, sources[number - counted], slotBit, visit))
        return false;
    counted += sources.size();
    auto slice =
        program.pipe(action.pipe).sliceBefore(action.microbatch, slotBit);
    if (!slice)
      continue;
    auto maker = index.definer(action.pipe, action.stage, *slice, slotBit);
    if (number == counted) {
      if (maker && !visit(Need{NeedKind::Data, *maker}, 0))
        return false;
      ++number;
    }
    ++counted;
  }
  return visitRules();
}

/// Whether the data that a row reads is there; false where that takes a closer
/// look.
template <class Clock> bool EventRun<Clock>::surelyHasData(ActionId row) {
  const KindInfo &info = program.kindOf(row);
  if (info.isRecv() || (!around.transport && !info.isCompute()))
    return true;
  Action action = program[row];
  uint8_t own = pairOf(action, action.stage);
  if (!info.isCompute())
    return own & info.defines;
  const Pipe &pipe = program.pipe(action.pipe);
  if ((own & info.needs) != info.needs || pipe.slices != 1)
    return false;
  for (uint8_t slotBit : slotsIn(info.defines & slot::moving)) {
    auto sources = index.sourcesOf(action.pipe, action.stage, slotBit);
    if (sources.empty())
      continue;
    bool isLocal =
        !around.transport || pipe.rankOfStage[sources[0].value] ==
                                 pipe.rankOfStage[action.stage.value];
    uint8_t come = isLocal ? pairOf(action, sources[0]) : own >> slot::count;
    if (sources.size() != 1 || !(come & slotBit))
      return false;
  }
  return true;
}

/// Notes what a row that ended leaves for others.
template <class Clock> void EventRun<Clock>::handOn(ActionId row) {
  const KindInfo &info = program.kindOf(row);
  if (info.isSend() || (!info.isCompute() && !around.transport))
    return;
  Action action = program[row];
  pairOf(action, action.stage) |=
      info.isCompute() ? info.defines : info.defines << slot::count;
}

/// Who makes a slot for `action`; nothing, and noted, when nobody does.
template <class Clock>
std::optional<ActionId>
EventRun<Clock>::makerOf(const Action &action, StageId stage, uint8_t slotBit) {
  auto maker = index.definer(action.pipe, stage, action.microbatch, slotBit);
  whole &= maker.has_value();
  return maker;
}

template <class Clock>
template <class Visit>
bool EventRun<Clock>::visitInput(ActionId row, const Action &action,
                                 StageId source, uint8_t slotBit,
                                 const Visit &visit) {
  const Pipe &pipe = program.pipe(action.pipe);
  bool isLocal =
      pipe.rankOfStage[source.value] == pipe.rankOfStage[action.stage.value];
  if (isLocal || !around.transport) {
    auto maker = makerOf(action, source, slotBit);
    return !maker || visit(Need{NeedKind::Data, *maker},
                           (isLocal ? 0 : clock.way(action, source)) -
                               clock.early(*maker) - clock.late(row));
  }
  auto message = messages->find(action.pipe, source, action.stage,
                                action.microbatch, slotBit);
  auto recv = message ? messages->recv(*message) : std::nullopt;
  if (recv)
    return visit(Need{NeedKind::Data, *recv}, -clock.late(row));
  if (!firstLack)
    firstLack = {row, source, slotBit};
  whole = false;
  return true;
}

/// How long before the end of the row in front of it, or of its group, a send
/// is issued.
template <class Clock>
Time EventRun<Clock>::headStart(ActionId row, uint32_t issuedAfter) const {
  if (!clock.hasSlack())
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

/// Both ends of the message of a send or receive; nothing when it never ends,
/// since the message lacks an end or the row repeats it.
template <class Clock>
std::optional<typename EventRun<Clock>::Ends>
EventRun<Clock>::endsOf(ActionId row) const {
  auto other = messages->partner(row);
  if (!other)
    return std::nullopt;
  return program.kindOf(row).isSend() ? Ends{row, *other} : Ends{*other, row};
}

/// What a message waits for that has started.
template <class Clock>
std::optional<Need> EventRun<Clock>::endNeed(ActionId row, Ends ends) const {
  if (row == ends.recv || around.transport->sendWait == SendWait::Receive)
    return Need{NeedKind::Start, ends.other(row)};
  if (uint32_t room = rooms.empty() ? none : rooms[row.value]; room != none)
    return Need{NeedKind::Room, ActionId(room)};
  return std::nullopt;
}

template <class Clock> void EventRun<Clock>::start(uint32_t number) {
  Queue &queue = queues[number];
  ActionId begin(queue.begin);
  const KindInfo &info = program.kindOf(begin);
  auto meeting = info.meets() && !meetings.empty()
                     ? index.rules().meetingOf(begin)
                     : std::nullopt;
  queue.runs = true;
  queue.open = 1 + meeting.has_value(); // One for what is no message.
  queue.unitEnd = queue.ready;
  if (meeting)
    ; // It takes its time once all have come.
  else if (info.meets() || info.isBeside())
    queue.unitEnd = clock.after(queue.ready, clock.time(begin));
  else if (!hasStreams || info.isCompute())
    queue.unitEnd =
        clock.after(queue.ready, clock.time(begin, ActionId(queue.end)));
  bool posts = around.transport && (groups.hasGroups() || !info.isCompute());
  forEachMember(queue, [&](ActionId row) {
    states[row.value] = Started;
    clock.begin(row, queue.ready);
    queue.open += posts && !isCompute(row);
  });
  if (meeting)
    join(*meeting, number, begin);
  else if (queue.open != 1)
    forEachMember(queue, [&](ActionId row) {
      if (!isCompute(row))
        post(row);
    });
  close(number);
}

/// Lets a meeting go on whose member at the head of a queue has started; all
/// begin with the last.
template <class Clock>
void EventRun<Clock>::join(uint32_t meeting, uint32_t number, ActionId row) {
  MeetingState &state = meetings[meeting];
  Moment start = clock.started(row, queues[number].ready);
  state.latest = clock.joined(state.latest, start);
  if (--state.open == 0)
    for (ActionId member : index.rules().members(meeting))
      complete(member, clock.after(state.latest, clock.time(member)));
}

/// Lets a message go on one end of which has started, and those that wait for
/// the room that this makes.
template <class Clock> void EventRun<Clock>::post(ActionId row) {
  for (posted.push_back(row); !posted.empty();) {
    auto ends = endsOf(posted.back());
    Time way = clock.message(program[posted.pop_back_val()]);
    if (!ends)
      continue;
    std::optional<Moment> at[2];
    for (bool isRecv : {false, true}) {
      ActionId end = isRecv ? ends->recv : ends->send;
      auto need = endNeed(end, *ends);
      if (state(end) == Started && (!need || met(*need)))
        at[isRecv] = endOf(end, *ends, way);
    }
    if (at[0])
      complete(ends->send, *at[0]);
    if (at[1])
      complete(ends->recv, *at[1]);
    if (uint32_t send = roomFor.empty() ? none : roomFor[ends->recv.value];
        at[1] && send != none && state(ActionId(send)) == Started)
      posted.push_back(ActionId(send));
  }
}

template <class Clock>
typename EventRun<Clock>::Moment EventRun<Clock>::startOf(ActionId row) const {
  if constexpr (Clock::isOn)
    return clock.started(row, queues[ownerOf(row)].ready);
  return {};
}

/// When an end of a message that has started is through; it is on its way for
/// a time. A send is stored once there is room; a receive that is there before
/// makes that itself.
template <class Clock>
typename EventRun<Clock>::Moment EventRun<Clock>::endOf(ActionId row, Ends ends,
                                                        Time way) const {
  if constexpr (!Clock::isOn)
    return {};
  Moment start = startOf(row);
  if (around.transport->sendWait == SendWait::Receive)
    return clock.after(clock.later(startOf(ends.send), startOf(ends.recv)),
                       way);
  if (row == ends.recv)
    return clock.later(start, clock.after(state(ends.send) == Started
                                              ? endOf(ends.send, ends, way)
                                              : clock.completed(ends.send),
                                          way));
  auto need = endNeed(row, ends);
  return need && met(*need) ? clock.later(start, clock.completed(need->row))
                            : start;
}

/// Notes that a member of a running unit is through.
template <class Clock> void EventRun<Clock>::complete(ActionId row, Moment at) {
  uint32_t number = ownerOf(row);
  states[row.value] = Completed;
  clock.complete(row, at);
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
  if (!isSpread(queues[number].begin))
    return advance(number, last, queues[number].unitEnd);
  const Queue unit = queues[number];
  forEachMember(unit, [&](ActionId row) {
    if (next[row.value] == none || next[row.value] >= unit.end)
      advance(queueOfRow[row.value], row, unit.unitEnd);
  });
}

template <class Clock> void EventRun<Clock>::end(ActionId row, Moment at) {
  clock.end(row, at);
  states[row.value] = Ended;
  if (!pairs.empty())
    handOn(row);
  for (uint32_t number = firstWaiter[row.value]; number != 0;
       number = queues[number - 1].nextWaiter) {
    queues[number - 1].waits = false;
    awake.push_back(number - 1);
  }
}

/// Goes to the unit behind that of `row`, which ended.
template <class Clock>
void EventRun<Clock>::advance(uint32_t number, ActionId row, Moment at) {
  queues[number].free = clock.free(at, row);
  queues[number].last = row.value;
  enter(number, nextInQueue(number, row));
  if (number != running)
    awake.push_back(number);
}

} // namespace ppcc
