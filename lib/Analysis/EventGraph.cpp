#include "ppcc/Analysis/EventGraph.h"

#include "Queues.h"
#include "ppcc/Analysis/WaitCycle.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

using namespace ppcc;

EventGraph::EventGraph(const Program &program, const ProgramIndex &index,
                       const MessageIndex &messages, const Transport &transport)
    : program(program), index(index), messages(messages), transport(transport),
      previous(program.size(), none), partners(program.size(), none),
      firstWaiter(program.size(), none), nextWaiter(program.size(), none),
      states(program.size(), Waiting), left(program.size()) {
  findLanes();
  findUnits();
  countSources();
  linkPartners();
  linkQueues();
  std::vector<uint32_t> issued;
  if (transport.hasStreams() || !lanes.empty())
    issued = issuedBehind(program, transport.layout);
  if (transport.hasStreams())
    beside = std::move(issued);
  else if (transport.sendWait == SendWait::Capacity)
    beside = roomMakers(program, messages, transport.capacity);
  else
    beside.assign(lanes.empty() ? 0 : program.size(), none);
  if (!transport.hasStreams() && !lanes.empty())
    for (uint32_t row = 0; row != program.size(); ++row)
      if (isIssued(row))
        beside[row] = issued[row];
  for (uint32_t meeting = 0; meeting != index.rules().numMeetings(); ++meeting)
    meetings.push_back(
        {static_cast<uint32_t>(index.rules().members(meeting).size()), 0});
}

/// One past the last row of the group that holds `row`.
uint32_t EventGraph::groupEnd(uint32_t row) const {
  do
    ++row;
  while (row != program.size() && program.joined(ActionId(row)));
  return row;
}

template <class Visit>
void EventGraph::forEachMember(uint32_t unit, Visit visit) const {
  for (uint32_t row = unit, end = groupEnd(unit); row != end; ++row)
    if (units[row] == unit)
      visit(row);
}

void EventGraph::findLanes() {
  if (!program.kinds.hasBeside())
    return;
  lanes.resize(program.size());
  for (uint32_t row = 0; row != program.size(); ++row)
    if (const KindInfo &info = program.kindOf(ActionId(row));
        hasOwnQueue(info, transport.layout))
      lanes[row] = info.lane;
}

void EventGraph::findUnits() {
  uint32_t size = program.size(), row = 0;
  while (row != size && !program.joined(ActionId(row)))
    ++row;
  if (row == size)
    return;
  units.resize(size);
  uint32_t unit[2] = {none, none}; // Of communication, of compute actions.
  for (row = 0; row != size; ++row) {
    if (!program.joined(ActionId(row)))
      unit[0] = unit[1] = none;
    uint32_t &own = unit[transport.hasStreams() && isCompute(row)];
    if (own == none)
      own = row;
    units[row] = own;
  }
}

/// The slots that move, by number.
static unsigned movingSlot(uint8_t slotBit) {
  return slotBit == slot::InputGrad;
}

void EventGraph::countSources() {
  size_t numPairs = 0;
  for (uint32_t i = 0; i != program.pipes.size(); ++i) {
    const Pipe &pipe = program.pipes[i];
    firstPair.push_back(numPairs);
    numPairs += size_t(pipe.numStages()) * pipe.numMicrobatches;
    firstSources.push_back(sources.size());
    for (uint32_t stage = 0; stage != pipe.numStages(); ++stage)
      for (uint8_t slotBit : {slot::Output, slot::InputGrad}) {
        Sources &row = sources.emplace_back();
        for (StageId source :
             index.sourcesOf(PipeId(i), StageId(stage), slotBit))
          if (pipe.rankOfStage[source.value] == pipe.rankOfStage[stage])
            row.local = true;
          else
            ++row.remote;
      }
  }
  pairs.resize(numPairs);
}

void EventGraph::linkPartners() {
  for (uint32_t row = 0; row != program.size(); ++row)
    if (!isCompute(row))
      partners[row] = messages.partner(program[ActionId(row)])->value;
}

void EventGraph::linkQueues() {
  Queues queues(program, &messages, transport.layout);
  std::vector<uint32_t> last(queues.size(), none);
  for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank)
    for (uint32_t row = program.begin(RankId(rank)).value;
         row != program.end(RankId(rank)).value; ++row) {
      uint32_t &before = last[queues.of(program[ActionId(row)], RankId(rank))];
      if (before != none && unitOf(ActionId(before)) != unitOf(ActionId(row))) {
        previous[row] = before;
        if (unitOf(ActionId(row)) == row)
          waitFor(row, ActionId(before));
      }
      before = row;
    }
}

bool EventGraph::met(Need need) const {
  static constexpr State enough[] = {/*Queue=*/Ended, /*Issue=*/Ended,
                                     /*Data=*/Ended,
                                     /*Start=*/Started, /*Room=*/Completed};
  return states[need.row.value] >= enough[static_cast<size_t>(need.kind)];
}

EventGraph::StartNeed EventGraph::startNeed(uint32_t row, const Action &action,
                                            uint32_t number) {
  auto linked = [](NeedKind kind, uint32_t row) {
    return StartNeed{{kind, ActionId(row)}, row == none, false};
  };
  if (number == 0)
    return linked(NeedKind::Queue, previous[row]);
  if (number == 1)
    return linked(NeedKind::Issue, isIssued(row) ? beside[row] : none);
  return dataNeed(row, action, number - 2);
}

EventGraph::StartNeed EventGraph::dataNeed(uint32_t row, const Action &action,
                                           uint32_t number) {
  const KindInfo &info = program.kinds[action.kind];
  auto data = [](std::optional<ActionId> maker) {
    return StartNeed{{NeedKind::Data, maker.value_or(ActionId())},
                     !maker.has_value(),
                     false};
  };
  auto definer = [&](StageId stage, uint8_t slotBit) {
    return data(index.definer(action.pipe, stage, action.microbatch, slotBit));
  };
  auto rules = index.rules().neededBy(ActionId(row));
  if (number < rules.size())
    return data(rules[number]);
  number -= rules.size();
  if (info.kindClass == KindClass::Send && number == 0)
    return definer(action.stage, info.mainSlot());
  if (!info.isCompute())
    return {{}, true, true};
  for (unsigned rest = info.needs; rest; rest &= rest - 1)
    if (number-- == 0)
      return definer(action.stage, rest & -rest);
  for (unsigned rest = info.defines; rest; rest &= rest - 1) {
    uint8_t slotBit = rest & -rest;
    auto sources = index.sourcesOf(action.pipe, action.stage, slotBit);
    if (number >= sources.size()) {
      number -= sources.size();
      continue;
    }
    StageId source = sources[number];
    if (program.rankOfStage(action.pipe, source) ==
        program.rankOfStage(action.pipe, action.stage))
      return definer(source, slotBit);
    auto message = messages.find(action.pipe, source, action.stage,
                                 action.microbatch, slotBit);
    auto recv = message ? messages.recv(*message) : std::nullopt;
    if (!recv && !firstLack)
      firstLack = {ActionId(row), source, slotBit};
    return data(recv);
  }
  return {{}, true, true};
}

std::optional<Need> EventGraph::endNeed(uint32_t row) {
  const KindInfo &info = program.kindOf(ActionId(row));
  if (info.isCompute()) {
    auto meeting =
        info.meets() ? index.rules().meetingOf(ActionId(row)) : std::nullopt;
    if (!meeting || meetings[*meeting].open == 0)
      return std::nullopt;
    auto members = index.rules().members(*meeting);
    uint32_t &absent = meetings[*meeting].firstAbsent;
    while (states[members[absent].value] >= Started)
      ++absent;
    return Need{NeedKind::Start, members[absent]};
  }
  if (info.kindClass == KindClass::Recv ||
      transport.sendWait == SendWait::Receive)
    return Need{NeedKind::Start, ActionId(partners[row])};
  if (transport.sendWait == SendWait::Capacity && beside[row] != none)
    return Need{NeedKind::Room, ActionId(beside[row])};
  return std::nullopt;
}

std::optional<Need> EventGraph::unmetStart(uint32_t unit, Progress &progress) {
  uint32_t end = isSingle(unit) ? unit + 1 : groupEnd(unit);
  for (progress.member = std::max(progress.member, unit);
       progress.member != end; ++progress.member, progress.need = 0) {
    uint32_t row = progress.member;
    if (unitOf(ActionId(row)) != unit)
      continue;
    if (progress.need == 0 && previous[row] != none &&
        states[previous[row]] != Ended)
      return Need{NeedKind::Queue, ActionId(previous[row])};
    Action action = program[ActionId(row)];
    for (;; ++progress.need) {
      StartNeed next = startNeed(row, action, progress.need);
      if (next.isLast)
        break;
      if (!next.isVacuous && !met(next.need))
        return next.need;
    }
  }
  return std::nullopt;
}

bool EventGraph::surelyHasInput(const Action &action, const Pair &pair,
                                uint8_t slotBit) {
  if (slotBit == slot::WeightGrad)
    return true;
  const Sources &from = sources[firstSources[action.pipe.value] +
                                2 * action.stage.value + movingSlot(slotBit)];
  if (pair.received[movingSlot(slotBit)] < from.remote)
    return false;
  if (from.local)
    for (StageId source : index.sourcesOf(action.pipe, action.stage, slotBit))
      if (program.rankOfStage(action.pipe, source) ==
              program.rankOfStage(action.pipe, action.stage) &&
          !(pairOf(action, source).filled & slotBit))
        return false;
  return true;
}

bool EventGraph::surelyCanStart(uint32_t row) {
  if (!isSingle(row) ||
      (previous[row] != none && states[previous[row]] != Ended))
    return false;
  const KindInfo &info = program.kindOf(ActionId(row));
  if (info.isDeclared() || !index.rules().neededBy(ActionId(row)).empty())
    return false;
  if (!info.isCompute() && transport.hasStreams() && beside[row] != none &&
      states[beside[row]] != Ended)
    return false;
  if (info.kindClass == KindClass::Recv)
    return true;
  Action action = program[ActionId(row)];
  const Pair &pair = pairOf(action, action.stage);
  if (info.kindClass == KindClass::Send)
    return pair.filled & info.defines;
  if ((pair.filled & info.needs) != info.needs)
    return false;
  for (unsigned rest = info.defines; rest; rest &= rest - 1)
    if (!surelyHasInput(action, pair, rest & -rest))
      return false;
  return true;
}

/// Notes what a row that ended leaves for others.
void EventGraph::handOn(uint32_t row) {
  const KindInfo &info = program.kindOf(ActionId(row));
  if (info.kindClass == KindClass::Send || info.isDeclared())
    return;
  Action action = program[ActionId(row)];
  Pair &pair = pairOf(action, action.stage);
  if (info.isCompute())
    pair.filled |= info.defines;
  else
    ++pair.received[movingSlot(info.mainSlot())];
}

void EventGraph::waitFor(uint32_t waiter, ActionId row) {
  nextWaiter[waiter] = firstWaiter[row.value];
  firstWaiter[row.value] = waiter;
}

void EventGraph::wake(uint32_t row) {
  for (uint32_t waiter = std::exchange(firstWaiter[row], none); waiter != none;
       waiter = nextWaiter[waiter])
    awake.push_back(waiter);
}

void EventGraph::tryStart(uint32_t unit) {
  if (surelyCanStart(unit))
    return start(unit);
  // Needs before these are looked at again rather than remembered.
  constexpr uint32_t fewNeeds = 8;
  auto saved = progressOf.find(unit);
  Progress progress = saved == progressOf.end() ? Progress{} : saved->second;
  if (auto need = unmetStart(unit, progress)) {
    if (saved != progressOf.end())
      saved->second = progress;
    else if (progress.member != unit || progress.need >= fewNeeds)
      progressOf[unit] = progress;
    waitFor(unit, need->row);
    return;
  }
  if (saved != progressOf.end())
    progressOf.erase(saved);
  start(unit);
}

void EventGraph::start(uint32_t unit) {
  if (isSingle(unit)) {
    markStarted(unit);
    auto need = endNeed(unit);
    if (!need || met(*need))
      end(unit);
    else if (need->kind != NeedKind::Start)
      waitFor(unit, need->row);
    return;
  }
  Progress progress;
  forEachMember(unit, [&](uint32_t) { ++progress.open; });
  progressOf[unit] = progress;
  forEachMember(unit, [&](uint32_t row) {
    markStarted(row);
    awake.push_back(row);
  });
}

/// The other end of a message is the only one that waits for a start, so it is
/// in no list; nor are those that meet.
void EventGraph::markStarted(uint32_t row) {
  states[row] = Started;
  if (!meetings.empty())
    if (auto meeting = index.rules().meetingOf(ActionId(row)))
      joinMeeting(*meeting);
  uint32_t partner = partners[row];
  if (partner == none || states[partner] != Started)
    return;
  if (auto need = endNeed(partner); need && need->kind == NeedKind::Start)
    awake.push_back(partner);
}

void EventGraph::joinMeeting(uint32_t meeting) {
  if (--meetings[meeting].open == 0)
    for (ActionId member : index.rules().members(meeting))
      awake.push_back(member.value);
}

void EventGraph::tryComplete(uint32_t row) {
  if (states[row] != Started)
    return;
  auto need = endNeed(row);
  if (need && !met(*need)) {
    if (need->kind != NeedKind::Start)
      waitFor(row, need->row);
    return;
  }
  uint32_t unit = unitOf(ActionId(row));
  if (isSingle(row))
    return end(unit);
  states[row] = Completed;
  wake(row);
  auto progress = progressOf.find(unit);
  if (--progress->second.open != 0)
    return;
  progressOf.erase(progress);
  end(unit);
}

void EventGraph::end(uint32_t unit) {
  auto endRow = [&](uint32_t row) {
    states[row] = Ended;
    --left;
    handOn(row);
    wake(row);
  };
  if (isSingle(unit))
    endRow(unit);
  else
    forEachMember(unit, endRow);
}

bool EventGraph::run() {
  for (uint32_t row = 0; row != program.size(); ++row) {
    // The others wait in their queues.
    if (unitOf(ActionId(row)) != row || previous[row] != none)
      continue;
    tryStart(row);
    while (!awake.empty()) {
      uint32_t waiter = awake.pop_back_val();
      if (states[waiter] == Waiting)
        tryStart(waiter);
      else
        tryComplete(waiter);
    }
  }
  return left == 0;
}

std::vector<EventGraph::Block> EventGraph::blocks() {
  // The waiters are not needed any more.
  std::vector<uint32_t> &headOf = firstWaiter;
  std::vector<Block> found;
  std::vector<uint32_t> heads;
  for (uint32_t row = 0; row != program.size(); ++row) {
    uint32_t unit = unitOf(ActionId(row)), before = previous[unit];
    if (states[row] == Ended)
      headOf[row] = none;
    else if (states[unit] != Waiting || before == none ||
             states[before] == Ended)
      headOf[row] = unit;
    else
      headOf[row] = headOf[before];
    if (row == unit && headOf[row] == unit)
      heads.push_back(unit);
  }
  for (uint32_t unit : heads) {
    auto add = [&](uint32_t row, Need need) {
      if (!met(need))
        found.push_back({unit, ActionId(row), need, headOf[need.row.value]});
    };
    uint32_t end = isSingle(unit) ? unit + 1 : groupEnd(unit);
    for (uint32_t row = unit; row != end; ++row) {
      if (unitOf(ActionId(row)) != unit)
        continue;
      if (states[row] == Started)
        if (auto need = endNeed(row))
          add(row, *need);
      if (states[row] != Waiting)
        continue;
      Action action = program[ActionId(row)];
      StartNeed next;
      for (uint32_t number = 0; !(next = startNeed(row, action, number)).isLast;
           ++number)
        if (!next.isVacuous)
          add(row, next.need);
    }
  }
  return found;
}

std::vector<EventGraph::Block> EventGraph::shortestCircle() {
  std::vector<Block> all = blocks(), circle;
  std::vector<Wait> waits;
  waits.reserve(all.size());
  for (const Block &block : all)
    waits.push_back({block.unit, block.on});
  for (uint32_t wait : ppcc::shortestCircle(waits))
    circle.push_back(all[wait]);
  return circle;
}
