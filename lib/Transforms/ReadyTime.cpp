// Places messages in the order in which a simulation of the program sends them.
//
// Algorithm: list scheduling. Compute actions run as their inputs come. A
// message is due when its data is ready plus half of its slack: the free float
// (critical path method, Kelley and Walker 1959) before its reader starts if no
// message waits for another, at most the time of all first microbatches. So a
// message that nobody misses delays no other, even if costs differ from those
// planned. A message occupies the streams of both ranks. One held back by the
// prefetch bound is due when its turn comes, at the earliest.
// Invariant: a row is written when its action ends, both ends of a message or a
// transfer at once. So each rank's list is a projection of one global order, in
// which all can run.
// Cost: O(log n) for each of n actions and messages, plus the edges of readers.
// Example: F takes 1 on rank 0 and 3 on rank 1; latency 1. 1F1 could have its
// input at 3 but starts at 5: slack 2, so message 1 is due at 2 + 2 / 2 = 3.
//   rank 0: 0F0 0SEND_F0 0F1 0SEND_F1
//   rank 1: 1RECV_F0 1RECV_F1 1F0 1F1    1F0 runs from 2 to 5
#include "CommPlan.h"
#include "Prefetch.h"

#include "ppcc/Analysis/Run/EventRun.h"
#include "ppcc/Basic/Diagnostics/Transforms.h"

using namespace ppcc;

namespace {

class ReadyTime {
public:
  explicit ReadyTime(CommPlan &plan)
      : plan(plan), program(plan.program), writer(plan.writer),
        inboxes(program, plan.index), ranks(program.ranksBegun()) {
    EventRun<RowClock> run(program, plan.index, nullptr,
                           {nullptr, /*inProgramOrder=*/true},
                           RowClock(program, plan.durations, uncontended));
    isTimed = run.run() && run.isWhole();
    for (ActionId row : program.rows()) {
      Action action = program[row];
      if (program.kindOf(action).isCompute() &&
          action.microbatch == program.pipe(action.pipe).firstMicrobatch)
        maxSlack += plan.durations.of(action);
    }
    if (plan.prefetch)
      prefetch.emplace(program, plan.index, *plan.prefetch);
    if (plan.times) {
      std::tie(plan.times->starts, plan.times->ends) =
          std::tie(uncontended.starts, uncontended.ends);
      plan.times->slacks.resize(program.size());
      plan.times->maxSlack = maxSlack;
    }
  }

  bool run() {
    for (RankId rank : program.ranks())
      start(rank);
    while (!running.empty() || !messages.empty() || release())
      if (messages.empty() ||
          (!running.empty() && running.top().end <= messages.top().due))
        finishItems();
      else
        sendMessage();
    for (RankId rank : program.ranks())
      if (!inboxes.done(rank)) {
        reportStuck(plan, inboxes, rank);
        return false;
      }
    return true;
  }

private:
  struct Rank {
    Time computeFree = 0, streamFree = 0;
  };
  /// A rank that runs its next item.
  struct Running {
    Time end;
    RankId rank;
    auto operator<=>(const Running &) const = default;
  };
  /// In the order in which they are sent; the more urgent goes first.
  struct Message {
    Time due, slack;
    RankId rank;
    ActionId producer;
    uint8_t slotBit;
    StageId reader;
    auto operator<=>(const Message &) const = default;
  };
  template <class T>
  using Queue = std::priority_queue<T, std::vector<T>, std::greater<>>;

  /// Runs the next item of `rank`, which runs none, if its inputs have come.
  void start(RankId rank) {
    if (!inboxes.isReady(rank))
      return;
    // Even what costs nothing ends after its inputs, so that the order of the
    // ends is one in which the items can run.
    Time time = std::max<Time>(
        plan.durations.of(program, inboxes.begin(rank), inboxes.end(rank)), 1);
    Time free = inboxes.readyAt(rank);
    for (RankId each : inboxes.together(rank))
      free = std::max(free, ranks[each.value].computeFree);
    running.push({free + time, rank});
  }
  /// Whether a rank goes on that waited for another one alone.
  bool release() {
    auto rank = inboxes.release();
    if (rank)
      start(*rank);
    return rank.has_value();
  }

  void finishItems() {
    auto [end, first] = running.top();
    running.pop();
    for (RankId rank : inboxes.together(first))
      finishItem(rank, end);
  }

  void finishItem(RankId rank, Time end) {
    ActionId first = inboxes.begin(rank), last = inboxes.end(rank);
    const KindInfo &info = program.kindOf(first);
    if (!info.isMove() || info.occupiesRank()) // What moves keeps none busy.
      ranks[rank.value].computeFree = end;
    writer.setRowTimes({end});
    writer.copyItem(rank);
    inboxes.advance(rank);
    for (ActionId row : RowRange{first, last})
      deliverResults(rank, row, end);
    if (prefetch)
      prefetch->hasRun(
          rank, first, last,
          [&](ActionId producer, uint8_t slotBit, StageId reader, Time due) {
            messages.push(
                {std::max(due, end), slackOf(producer, slotBit, reader),
                 program.rankOf(producer), producer, slotBit, reader});
          });
    start(rank);
  }

  /// Hands on the results of `row`, which ended at `end`.
  void deliverResults(RankId rank, ActionId row, Time end) {
    Action action = program[row];
    RankId home = program.rankOfStage(action.pipe, action.stage);
    forEachReader(
        program, plan.index, action,
        [&](uint8_t slotBit, StageId reader, RankId to) {
          if (to == home) { // Between its items, a rank waits for nothing.
            inboxes.deliver(action, slotBit, reader, to, end);
            return;
          }
          Time slack = std::min(slackOf(row, slotBit, reader), maxSlack),
               due = end + slack / 2;
          if (auto readerRow = plan.index.definer(action.pipe, reader,
                                                  action.microbatch, slotBit);
              plan.times && readerRow)
            plan.times->slacks[readerRow->value] = slack;
          if (!prefetch ||
              prefetch->mayPlace(row, action, slotBit, reader, due))
            messages.push({due, slack, rank, row, slotBit, reader});
        });
  }

  /// How long what `reader` reads lies there when messages never wait for each
  /// other.
  Time slackOf(ActionId producer, uint8_t slotBit, StageId reader) {
    Action action = program[producer];
    auto row = rowOf(action, reader, slotBit);
    if (!row || !isTimed)
      return 0;
    auto sources = plan.index.sourcesOf(action.pipe, reader, slotBit);
    constexpr size_t few = 4;
    if (sources.size() <= few)
      return uncontended.starts[row->value] -
             lastArrival(action, slotBit, reader);
    auto [known, isNew] = arrivals.try_emplace({row->value, slotBit});
    if (isNew)
      known->second = lastArrival(action, slotBit, reader);
    return uncontended.starts[row->value] - known->second;
  }

  /// The row of a stage that computes a slot of an action's microbatch.
  std::optional<ActionId> rowOf(const Action &action, StageId stage,
                                uint8_t slotBit) const {
    return plan.index.definer(action.pipe, stage, action.microbatch, slotBit);
  }

  /// When the last of what `reader` reads comes. O(its edges).
  Time lastArrival(const Action &action, uint8_t slotBit,
                   StageId reader) const {
    Time last = 0;
    for (StageId source : plan.index.sourcesOf(action.pipe, reader, slotBit)) {
      bool isLocal = program.rankOfStage(action.pipe, source) ==
                     program.rankOfStage(action.pipe, reader);
      Time latency = isLocal ? 0
                             : plan.durations.ofEdge(action.pipe, source,
                                                     reader, action.microbatch);
      last = std::max(last,
                      uncontended.ends[rowOf(action, source, slotBit)->value] +
                          latency);
    }
    return last;
  }

  void sendMessage() {
    Message message = messages.top();
    messages.pop();
    Action producer = program[message.producer];
    RankId to = program.rankOfStage(producer.pipe, message.reader);
    Time &here = ranks[message.rank.value].streamFree;
    Time &there = ranks[to.value].streamFree;
    here = there = std::max({message.due, here, there}) +
                   plan.durations.ofEdge(producer.pipe, producer.stage,
                                         message.reader, producer.microbatch);
    writer.setRowTimes(
        {message.due, message.slack, there, message.producer.value});
    writer.message(producer, message.rank, message.slotBit, message.reader);
    if (inboxes.deliver(producer, message.slotBit, message.reader, to, there))
      start(to);
  }

  CommPlan &plan;
  const Program &program;
  CommWriter &writer;
  RowTimes uncontended; ///< With messages that never wait for each other.
  bool isTimed = false; ///< Whether all rows have these.
  /// Of readers with many edges, by row and slot.
  DenseMap<std::pair<uint32_t, uint8_t>, Time> arrivals;
  Inboxes inboxes;
  std::vector<Rank> ranks;
  /// What the first microbatches take on all stages: no slack grows with their
  /// number.
  Time maxSlack = 0;
  Queue<Running> running;
  Queue<Message> messages;
  std::optional<Prefetch> prefetch;
};

} // namespace

bool ppcc::planReadyTime(CommPlan &plan) {
  if (plan.durations.fits(plan.program, plan.messages))
    return ReadyTime(plan).run();
  return plan.diags.report<diag::PlanTooLong>(Location(plan.program.name()));
}
