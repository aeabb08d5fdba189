// Runs programs on a transport.
#include "ppcc/Analysis/Simulation.h"

#include "Queues.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>

using namespace ppcc;

namespace {

constexpr uint32_t none = Simulation::none;
static_assert(none == noRow);

/// Without a transport messages keep no action waiting, nor lane `comm`.
QueueLayout layoutOf(const Transport *transport) {
  return transport ? transport->layout : QueueLayout::StreamPerEdge;
}

/// The rows of each queue: the first, and for each row the next one.
class QueueLinks {
public:
  /// Without a transport messages are in no queue.
  QueueLinks(const Program &program, const MessageIndex *messages,
             const Transport *transport) {
    QueueLayout layout = layoutOf(transport);
    bool hasStreams = transport && transport->hasStreams();
    if (transport && !hasStreams && !program.kinds.hasBeside()) {
      for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank)
        heads.push_back(program.size(RankId(rank))
                            ? program.begin(RankId(rank)).value
                            : none);
      return;
    }
    Queues numbers(program, messages, layout);
    heads.assign(numbers.size(), none);
    next.resize(program.size());
    issued = issuedBehind(program, layout);
    if (hasStreams && layout != QueueLayout::Stream)
      queues.resize(program.size());
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank)
      for (ActionId row = program.end(RankId(rank));
           row != program.begin(RankId(rank));) {
        --row.value;
        if (!transport && !program.kindOf(row).isCompute())
          continue;
        uint32_t queue = numbers.of(program[row], RankId(rank));
        next[row.value] = std::exchange(heads[queue], row.value);
        if (!queues.empty())
          queues[row.value] = queue;
      }
  }

  std::vector<uint32_t> heads;  ///< By queue.
  std::vector<uint32_t> next;   ///< By row; empty for one queue a rank.
  std::vector<uint32_t> issued; ///< By row: as issuedBehind().
  std::vector<uint32_t> queues; ///< By row, with streams of more than one kind.
};

/// By row: of a send the receive that makes room for it, of a receive the send
/// that it makes room for, or none.
std::vector<uint32_t> roomLinks(const Program &program,
                                const MessageIndex &messages,
                                uint32_t capacity) {
  std::vector<uint32_t> rows = roomMakers(program, messages, capacity);
  for (uint32_t row = 0; row != program.size(); ++row)
    if (rows[row] != none &&
        program.kindOf(ActionId(row)).kindClass == KindClass::Send)
      rows[rows[row]] = row;
  return rows;
}

/// Runs queues, each as far as it goes, until nothing moves. Times are the
/// latest of what an action waits for, so the order of the work does not change
/// them.
class Run {
public:
  /// Without a transport compute actions wait for data alone.
  Run(const Program &program, const ProgramIndex &index,
      const MessageIndex *messages, const Durations &durations,
      const Transport *transport)
      : program(program), index(index), messages(messages),
        durations(durations), transport(transport), layout(layoutOf(transport)),
        hasStreams(transport && transport->hasStreams()),
        hasBeside(program.kinds.hasBeside()),
        splitsGroups(!transport || hasStreams) {
    for (uint32_t meeting = 0; meeting != index.rules().numMeetings();
         ++meeting)
      meetings.emplace_back().open = index.rules().members(meeting).size();
    for (uint32_t row = 0; row != program.size() && !hasGroups; ++row)
      hasGroups = program.joined(ActionId(row));
    result.starts.assign(program.size(), untold);
    result.ends.assign(program.size(), untold);
    result.causes.assign(program.size(), none);
  }

  std::optional<Simulation> run() {
    std::vector<uint32_t> heads = layOut();
    queues.resize(heads.size());
    for (uint32_t queue = 0; queue != heads.size(); ++queue)
      enter(queue, heads[queue]);
    for (uint32_t queue = 0; queue != queues.size(); ++queue) {
      awake.push_back(queue);
      while (!awake.empty())
        runQueue(awake.pop_back_val());
    }
    for (const Queue &queue : queues) {
      if (queue.begin != none)
        return std::nullopt;
      result.makespan = std::max(result.makespan, queue.free);
    }
    if (!transport && !placeMessages())
      return std::nullopt;
    return std::move(result);
  }

private:
  /// Of a start or an end that is not known. When a queue waits for the end,
  /// `untold - 1 - queue` stands in its place.
  static constexpr Time untold = -1;

  /// A queue, with the unit at its head: rows that start at once and end at
  /// once.
  struct Queue {
    uint32_t begin = none;      ///< The first row of the unit; none at the
                                ///< end of the queue.
    uint32_t end = 0;           ///< One past the last row of its group.
    uint32_t member = 0;        ///< The first row whose needs are not all met,
    uint32_t need = 0;          ///< and the first of them.
    Time ready = 0;             ///< When those before it were.
    uint32_t cause = none;      ///< The last of them.
    uint32_t open = 0;          ///< Members of the unit that run.
    Time unitEnd = 0;           ///< Of those that do not run any more.
    uint32_t unitCause = none;  ///< What let the last of them end.
    Time free = 0;              ///< The end of the unit before.
    uint32_t last = none;       ///< A row of it.
    uint32_t owner = 0;         ///< The queue that runs the unit.
    uint32_t nextWaiter = none; ///< Waits for the same end.
    bool waits = false, runs = false;
  };

  /// When a member of a unit was through, which the unit may not be.
  struct Completion {
    Time at = untold;
    uint32_t cause = none;
  };

  std::vector<uint32_t> layOut() {
    if (transport) {
      links.emplace(program, messages, transport);
      if (transport->sendWait == SendWait::Capacity)
        rooms = roomLinks(program, *messages, transport->capacity);
      if (transport->sendWait != SendWait::Receive && hasGroups)
        completions.resize(program.size());
      return std::move(links->heads);
    }
    if (hasBeside) {
      links.emplace(program, nullptr, nullptr);
      return std::move(links->heads);
    }
    std::vector<uint32_t> heads;
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank)
      heads.push_back(firstCompute(program.begin(RankId(rank)), RankId(rank)));
    return heads;
  }

  uint32_t firstCompute(ActionId from, RankId rank) const {
    while (from != program.end(rank) && !isCompute(from.value))
      ++from.value;
    return from == program.end(rank) ? none : from.value;
  }

  bool isCompute(uint32_t row) const {
    return program.kindOf(ActionId(row)).isCompute();
  }

  /// Whether the messages of one group may be in several queues of a rank.
  bool hasManyStreams() const { return links && !links->queues.empty(); }

  /// The queue that runs the unit of a message of `rank`.
  uint32_t ownerOf(uint32_t row, RankId rank) const {
    if (hasManyStreams())
      return queues[links->queues[row]].owner;
    return rank.value + (hasStreams ? program.ranksBegun() : 0);
  }

  /// One past the last row of the group of `row`.
  uint32_t groupEnd(uint32_t row) const {
    do
      ++row;
    while (hasGroups && row != program.size() && program.joined(ActionId(row)));
    return row;
  }

  /// Whether `row`, of the same group, belongs to the unit that begins at
  /// `begin`.
  bool isMember(uint32_t row, uint32_t begin) const {
    if (hasBeside && (isApart(row) || isApart(begin)))
      return row == begin;
    return !splitsGroups || isCompute(row) == isCompute(begin);
  }

  /// Whether a row has a queue beside those of compute actions and messages.
  bool isApart(uint32_t row) const {
    return hasBeside && hasOwnQueue(program.kindOf(ActionId(row)), layout);
  }
  /// Whether a row stands behind the rank's own queue without being in it.
  bool isIssued(uint32_t row) const {
    return isApart(row) ||
           (hasStreams && !program.kindOf(ActionId(row)).occupiesRank());
  }

  /// Puts the unit of `row` at the head of a queue.
  void enter(uint32_t number, uint32_t row) {
    Queue &queue = queues[number];
    queue.runs = false;
    queue.begin = row;
    if (row == none)
      return;
    queue.end = groupEnd(row);
    queue.owner = number;
    if (hasManyStreams() && !isCompute(row)) {
      queue.begin = firstMessageOf(row);
      queue.owner = links->queues[queue.begin];
    }
    queue.member = queue.begin;
    queue.need = 0;
    queue.ready = queue.free;
    queue.cause = queue.last;
  }

  /// The first send or receive in the group of one.
  uint32_t firstMessageOf(uint32_t row) const {
    uint32_t first = row;
    while (hasGroups && program.joined(ActionId(row)))
      if (!isCompute(--row))
        first = row;
    return first;
  }

  void runQueue(uint32_t number) {
    Queue &queue = queues[number];
    while (queue.begin != none && !queue.waits && !queue.runs &&
           queue.owner == number && isReady(number))
      start(number);
  }

  /// Takes the end of `row`, plus `delay`, as something that the unit at the
  /// head waits for. False when it is not known yet; the queue is woken then.
  bool met(uint32_t number, uint32_t row, Time delay = 0) {
    Queue &queue = queues[number];
    Time end = result.ends[row];
    if (end < 0) {
      queue.nextWaiter =
          end == untold ? none : static_cast<uint32_t>(untold - 1 - end);
      queue.waits = true;
      result.ends[row] = untold - 1 - Time(number);
      return false;
    }
    if (end + delay > queue.ready || queue.cause == none) {
      queue.ready = std::max(queue.ready, end + delay);
      queue.cause = row;
    }
    return true;
  }

  bool isReady(uint32_t number) {
    Queue &queue = queues[number];
    for (; queue.member != queue.end; ++queue.member, queue.need = 0)
      if (isMember(queue.member, queue.begin) &&
          !isReady(number, ActionId(queue.member)))
        return false;
    return true;
  }

  /// Whether a member of the unit has all that it waits for.
  bool isReady(uint32_t number, ActionId row) {
    Action action = program[row];
    const KindInfo &info = program.kinds[action.kind];
    if (info.isCompute())
      return (!isIssued(row.value) || hasTurn(number, row.value)) &&
             hasData(number, row, action, info);
    if (hasStreams && !hasTurn(number, row.value))
      return false;
    for (ActionId needed : index.rules().neededBy(row))
      if (!met(number, needed.value))
        return false;
    if (info.kindClass == KindClass::Recv)
      return true;
    auto maker = makerOf(action, action.stage, info.mainSlot());
    return maker &&
           met(number, maker->value, -durations.slackOf(program, *maker).early);
  }

  /// Whether a row outside of the rank's own queue has been issued, and its own
  /// queue is free.
  bool hasTurn(uint32_t number, uint32_t row) {
    uint32_t issued = links->issued[row];
    if (issued != none && !met(number, issued, -headStart(row, issued)))
      return false;
    if (!hasManyStreams() || isCompute(row) || links->queues[row] == number)
      return true;
    const Queue &own = queues[links->queues[row]];
    if (own.begin != queues[number].begin)
      return met(number, own.begin);
    return own.last == none || met(number, own.last);
  }

  /// How long before the end of the row in front of it, or of its group, a send
  /// is issued.
  Time headStart(uint32_t row, uint32_t issued) const {
    if (!durations.hasSlack())
      return 0;
    Action action = program[ActionId(row)];
    const KindInfo &info = program.kinds[action.kind];
    if (info.kindClass != KindClass::Send)
      return 0;
    auto maker = makerOf(action, action.stage, info.mainSlot());
    return maker && firstOf(maker->value) == firstOf(issued)
               ? durations.slackOf(program, *maker).early
               : 0;
  }

  /// The first row of the group of `row`.
  uint32_t firstOf(uint32_t row) const {
    while (hasGroups && program.joined(ActionId(row)))
      --row;
    return row;
  }

  /// Whether all that a compute action reads is there: of its own stage, then
  /// of its neighbours; and what rules ask for.
  bool hasData(uint32_t number, ActionId row, const Action &action,
               const KindInfo &info) {
    uint32_t &need = queues[number].need, counted = 0;
    for (unsigned rest = info.needs; rest; rest &= rest - 1, ++counted) {
      if (need != counted)
        continue;
      if (!hasMaker(number, action, rest & -rest))
        return false;
      ++need;
    }
    for (unsigned rest = info.defines; rest; rest &= rest - 1) {
      uint8_t slotBit = rest & -rest;
      auto sources = index.sourcesOf(action.pipe, action.stage, slotBit);
      for (; need - counted < sources.size(); ++need)
        if (!hasInput(number, row, action, sources[need - counted], slotBit))
          return false;
      counted += sources.size();
    }
    auto rules = index.rules().neededBy(row);
    for (; need - counted < rules.size(); ++need) {
      uint32_t needed = rules[need - counted].value;
      // Without a transport messages have no end.
      if ((transport || isCompute(needed)) && !met(number, needed))
        return false;
    }
    return true;
  }

  std::optional<ActionId> makerOf(const Action &action, StageId stage,
                                  uint8_t slotBit) const {
    return index.definer(action.pipe, stage, action.microbatch, slotBit);
  }

  bool hasMaker(uint32_t number, const Action &action, uint8_t slotBit) {
    auto maker = makerOf(action, action.stage, slotBit);
    return maker && met(number, maker->value);
  }

  bool hasInput(uint32_t number, ActionId row, const Action &action,
                StageId source, uint8_t slotBit) {
    bool isLocal = program.rankOfStage(action.pipe, source) ==
                   program.rankOfStage(action.pipe, action.stage);
    Time late = durations.slackOf(program, row).late;
    if (isLocal || !transport) {
      auto maker = makerOf(action, source, slotBit);
      Time way = isLocal ? 0
                         : durations.ofEdge(action.pipe, source, action.stage,
                                            action.microbatch);
      return maker &&
             met(number, maker->value,
                 way - durations.slackOf(program, *maker).early - late);
    }
    auto message = messages->find(action.pipe, source, action.stage,
                                  action.microbatch, slotBit);
    auto recv = message ? messages->recv(*message) : std::nullopt;
    return recv && met(number, recv->value, -late);
  }

  void start(uint32_t number) {
    Queue &queue = queues[number];
    uint32_t begin = queue.begin, end = queue.end;
    queue.runs = true;
    queue.open = 1; // For the compute actions, if there are any.
    queue.unitEnd = queue.ready;
    queue.unitCause = queue.cause;
    const KindInfo &info = program.kindOf(ActionId(begin));
    if (info.meets())
      queue.open += index.rules().meetingOf(ActionId(begin)).has_value();
    else if (info.isBeside())
      queue.unitEnd += durations.of(program[ActionId(begin)]);
    else if (!hasStreams || isCompute(begin))
      queue.unitEnd += durations.of(program, ActionId(begin), ActionId(end));
    for (uint32_t row = begin; row != end; ++row) {
      if (!isMember(row, begin))
        continue;
      result.starts[row] = queue.ready;
      queue.open += transport && !isCompute(row);
    }
    if (info.meets())
      join(number, begin);
    else if (queue.open != 1)
      for (uint32_t row = begin; row != end; ++row)
        if (!isCompute(row))
          post(ActionId(row));
    close(number);
  }

  /// Lets a meeting go on whose member at the head of a queue has started; all
  /// begin with the last.
  void join(uint32_t number, uint32_t row) {
    auto which = index.rules().meetingOf(ActionId(row));
    if (!which) { // Its rank has another row in the meeting.
      queues[number].unitEnd += durations.of(program[ActionId(row)]);
      return;
    }
    MeetingState &meeting = meetings[*which];
    meeting.joined.push_back({number, row});
    if (result.starts[row] > meeting.latest || meeting.cause == none) {
      meeting.latest = result.starts[row];
      meeting.cause = queues[number].cause;
    }
    if (--meeting.open != 0)
      return;
    for (auto [queue, member] : std::exchange(meeting.joined, {}))
      complete(queue, member,
               {meeting.latest + durations.of(program[ActionId(member)]),
                meeting.cause});
  }

  /// Notes that a member of the running unit is through.
  void close(uint32_t number) {
    if (--queues[number].open == 0)
      finish(number);
  }

  void complete(uint32_t number, uint32_t row, Completion completion) {
    Queue &queue = queues[number];
    // Not so in a program that sends a message twice.
    if (!queue.runs || row < queue.begin || row >= queue.end)
      return;
    if (!completions.empty())
      completions[row] = completion;
    if (completion.at > queue.unitEnd) {
      queue.unitEnd = completion.at;
      queue.unitCause = completion.cause;
    }
    close(number);
  }

  /// When a message that has started was through; untold when it is not.
  Completion completionOf(uint32_t row) const {
    if (!completions.empty())
      return completions[row];
    return {std::max(result.ends[row], untold), result.causes[row]};
  }

  /// A message, and the queues that run its ends.
  struct Passage {
    uint32_t send, sendQueue, recv, recvQueue;
    Time time; ///< On its way.
  };

  /// The message of a send or receive; nothing when that never ends, since it
  /// lacks an end or stands twice in the program.
  std::optional<Passage> passageOf(ActionId row) const {
    Action action = program[row];
    auto message = messages->of(action);
    auto send = message ? messages->send(*message) : std::nullopt;
    auto recv = message ? messages->recv(*message) : std::nullopt;
    if (!send || !recv || (row != *send && row != *recv))
      return std::nullopt;
    auto owner = [&](ActionId end, StageId stage) {
      return ownerOf(end.value, program.rankOfStage(action.pipe, stage));
    };
    bool sends = row == *send;
    return Passage{
        send->value, owner(*send, sends ? action.stage : action.peer),
        recv->value, owner(*recv, sends ? action.peer : action.stage),
        durations.ofMessage(program, action)};
  }

  /// Lets a message go on whose send or receive has started.
  void post(ActionId row) {
    auto message = passageOf(row);
    if (!message)
      return;
    if (transport->sendWait == SendWait::Receive)
      return meet(*message);
    if (row.value == message->send)
      return store(*message);
    Completion sent = completionOf(message->send);
    if (sent.at >= 0)
      storeNext(*message, sent);
  }

  /// Sends a message once both ends have started.
  void meet(const Passage &message) {
    Time send = result.starts[message.send], recv = result.starts[message.recv];
    if (send < 0 || recv < 0)
      return;
    uint32_t later = send < recv ? message.recvQueue : message.sendQueue;
    Completion both{std::max(send, recv) + message.time, queues[later].cause};
    complete(message.sendQueue, message.send, both);
    complete(message.recvQueue, message.recv, both);
  }

  uint32_t roomOf(uint32_t row) const {
    return rooms.empty() ? none : rooms[row];
  }

  /// Stores a message, whose send has started, once there is room.
  void store(const Passage &message) {
    uint32_t room = roomOf(message.send);
    Completion made = room == none ? Completion{0} : completionOf(room);
    // In a batch, room may have been found for it with those before it.
    if (made.at < 0 || completionOf(message.send).at >= 0)
      return;
    Completion sent = storedAt(message, made);
    complete(message.sendQueue, message.send, sent);
    if (result.starts[message.recv] >= 0)
      storeNext(message, sent);
  }

  /// When a message is stored for which there is room since `made`.
  Completion storedAt(const Passage &message, Completion made) const {
    Completion start{result.starts[message.send],
                     queues[message.sendQueue].cause};
    return made.at > start.at ? made : start;
  }

  /// Gives a stored message to its receive, which has started, and so on for
  /// those that waited for the room that this makes.
  void storeNext(Passage message, Completion sent) {
    for (;;) {
      Completion came = deliver(message, sent);
      uint32_t next = roomOf(message.recv);
      auto passage = next == none || result.starts[next] < 0
                         ? std::nullopt
                         : passageOf(ActionId(next));
      if (!passage)
        return;
      message = *passage;
      sent = storedAt(message, came);
      complete(message.sendQueue, message.send, sent);
      if (result.starts[message.recv] < 0)
        return;
    }
  }

  Completion deliver(const Passage &message, Completion sent) {
    Completion came{result.starts[message.recv],
                    queues[message.recvQueue].cause};
    if (sent.at + message.time > came.at)
      came = {sent.at + message.time, sent.cause};
    complete(message.recvQueue, message.recv, came);
    return came;
  }

  /// Ends the unit at the head of a queue.
  void finish(uint32_t number) {
    Queue &queue = queues[number];
    uint32_t begin = queue.begin, last = begin;
    for (uint32_t row = begin; row != queue.end; ++row)
      if (isMember(row, begin)) {
        end(row, queue.unitEnd, queue.unitCause);
        last = row;
      }
    if (!hasManyStreams() || isCompute(begin))
      return advance(number, last, queue.unitEnd);
    uint32_t unitEnd = queue.end;
    for (uint32_t row = begin; row != unitEnd; ++row)
      if (!isCompute(row))
        advance(links->queues[row], row, result.ends[row]);
  }

  void end(uint32_t row, Time at, uint32_t cause) {
    Time waiter = std::exchange(result.ends[row], at);
    result.causes[row] = cause;
    while (waiter != untold) {
      uint32_t number = static_cast<uint32_t>(untold - 1 - waiter);
      queues[number].waits = false;
      awake.push_back(number);
      uint32_t next = queues[number].nextWaiter;
      waiter = next == none ? untold : untold - 1 - Time(next);
    }
  }

  /// Goes to the unit behind that of `row`, which ended.
  void advance(uint32_t number, uint32_t row, Time at) {
    queues[number].free = at;
    queues[number].last = row;
    enter(number, nextInQueue(number, row));
    awake.push_back(number);
  }

  uint32_t nextInQueue(uint32_t number, uint32_t row) const {
    if (hasStreams || hasBeside)
      return links->next[row];
    ActionId next(queues[number].end);
    if (!transport)
      return firstCompute(next, RankId(number));
    return next == program.end(RankId(number)) ? none : next.value;
  }

  /// Gives each message of the program the time that its data is on its way.
  bool placeMessages() {
    for (uint32_t row = 0; row != program.size(); ++row) {
      const KindInfo &info = program.kindOf(ActionId(row));
      if (info.isCompute())
        continue;
      Action action = program[ActionId(row)];
      if (!action.hasPeer())
        return false;
      StageId from =
          info.kindClass == KindClass::Send ? action.stage : action.peer;
      auto maker = makerOf(action, from, info.mainSlot());
      if (!maker)
        return false;
      result.starts[row] =
          result.ends[maker->value] - durations.slackOf(program, *maker).early;
      result.ends[row] =
          result.starts[row] + durations.ofMessage(program, action);
      result.causes[row] = maker->value;
    }
    return true;
  }

  const Program &program;
  const ProgramIndex &index;
  const MessageIndex *messages;
  const Durations &durations;
  const Transport *transport;
  QueueLayout layout;
  bool hasStreams;
  bool hasBeside;    ///< Some actions run beside the compute actions.
  bool splitsGroups; ///< The compute actions of a group from its messages.
  bool hasGroups = false;
  std::optional<QueueLinks> links;
  std::vector<uint32_t> rooms;         ///< By row, where there is a capacity.
  std::vector<Completion> completions; ///< By row, where sends are stored and
                                       ///< there are groups.
  struct MeetingState {
    uint32_t open = 0;     ///< Members that have not started.
    Time latest = 0;       ///< The last start of the others,
    uint32_t cause = none; ///< and what let that one go on.
    std::vector<std::pair<uint32_t, uint32_t>> joined; ///< Queues, rows.
  };
  std::vector<MeetingState> meetings;
  std::vector<Queue> queues;
  llvm::SmallVector<uint32_t> awake;
  Simulation result;
};

} // namespace

std::optional<Simulation> ppcc::simulate(const Program &program,
                                         const ProgramIndex &index,
                                         const Durations &durations) {
  return Run(program, index, nullptr, durations, nullptr).run();
}

std::optional<Simulation> ppcc::simulate(const Program &program,
                                         const ProgramIndex &index,
                                         const MessageIndex &messages,
                                         const Durations &durations,
                                         const Transport &transport) {
  if (!messages.fits())
    return std::nullopt;
  return Run(program, index, &messages, durations, &transport).run();
}

std::vector<ActionId> ppcc::criticalPath(const Simulation &simulation) {
  std::vector<ActionId> path;
  auto last = llvm::max_element(simulation.ends);
  uint32_t row =
      last == simulation.ends.end() ? none : last - simulation.ends.begin();
  for (; row != none; row = simulation.causes[row])
    path.push_back(ActionId(row));
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<RankTimes> ppcc::rankTimes(const Program &program,
                                       const Durations &durations,
                                       const Simulation &simulation) {
  std::vector<RankTimes> ranks(program.ranksBegun());
  for (uint32_t rank = 0; rank != ranks.size(); ++rank) {
    RankTimes &times = ranks[rank];
    bool isFirst = true;
    ActionId row = program.begin(RankId(rank)), end;
    for (; row != program.end(RankId(rank)); row = end) {
      end = program.groupEnd(row, RankId(rank));
      while (row != end && !program.kindOf(row).occupiesRank())
        ++row.value;
      if (row == end)
        continue;
      if (std::exchange(isFirst, false))
        times.begin = simulation.starts[row.value];
      times.end = simulation.ends[row.value];
      times.busy += durations.of(program, row, end);
    }
  }
  return ranks;
}
