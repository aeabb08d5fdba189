// Places messages as Megatron-LM's schedules do: between two steps of a rank
// what the one made is sent, and what the other reads is received.
#include "CommPlan.h"
#include "Fuse.h"
#include "ppcc/Analysis/Analyses.h"

using namespace ppcc;

namespace {

/// How the messages of a call are posted.
enum class Posting : uint8_t {
  Batch,  ///< At once.
  EvenOdd ///< One by one, in another order on odd ranks.
};

/// Messages by direction, as Megatron-LM's arguments name them.
enum Direction : uint8_t { SendPrev, SendNext, RecvPrev, RecvNext };

/// The place of each direction in a call.
constexpr uint8_t batchOrder[] = {0, 1, 2, 3}, evenOrder[] = {2, 0, 1, 3},
                  oddOrder[] = {3, 1, 0, 2};
/// Which calls come first between two steps: those with the messages that come
/// first here.
constexpr uint8_t callOrder[] = {1, 0, 2, 3};

/// A message that is sent, or received, between two steps.
struct Post {
  ActionId producer;
  StageId reader;
  uint8_t slotBit;
  Direction direction;
  RankId peer;
  uint32_t call = 0; ///< Among those between the two steps.
};

struct Megatron {
  const FusePlan &plan;
  Posting posting;

  std::optional<Program> run() {
    auto rows =
        allocateWithMessages(program, index, context.diags, context.sources);
    if (!rows)
      return std::nullopt;
    findSteps();
    findReceives();
    CommWriter writer(program, *rows, nullptr);
    for (RankId rank : program.ranks())
      writeRank(rank, writer);
    Program result = program.withRows(std::move(*rows));
    result.editHead().calls =
        posting == Posting::Batch ? style : CallStyle::None;
    return result;
  }

  struct StepInfo {
    uint8_t slots = 0;
    PhaseId phase;
  };

  static unsigned sideOf(uint8_t slotBit) { return slotBit != slot::Output; }

  /// Numbers the steps of all ranks, with the end of each rank for one more.
  void findSteps() {
    stepOf.resize(program.size());
    numberOf.resize(program.size());
    for (RankId rank : program.ranks()) {
      firstStep.push_back(steps.size());
      for (unsigned side : {0, 1})
        firstOf[side].push_back(stepsOf[side].size());
      for (ActionId row = program.begin(rank); row != program.end(rank);) {
        Step step = stepAt(program, rank, row, style);
        for (; row != step.end; ++row.value)
          addRow(row);
        if (step.slots)
          steps.push_back({step.slots, program[step.begin].phase});
      }
      steps.push_back({});
    }
  }

  void addRow(ActionId row) {
    stepOf[row.value] = steps.size();
    for (uint8_t slotBit :
         slotsIn(program.kindOf(row).defines & slot::crossStage)) {
      unsigned side = sideOf(slotBit);
      numberOf[row.value] = stepsOf[side].size() - firstOf[side].back();
      stepsOf[side].push_back(steps.size());
    }
  }

  /// The step before which `to` receives what `producer` makes for `reader`.
  ///
  /// In a ring all ranks turn together: the n-th forward of a rank is a turn
  /// after that of the rank before it, the n-th backward a turn after that of
  /// the rank after it. A message is received in the turn that sends it, also
  /// when it is needed later, so that its call is the other end of the
  /// sender's.
  uint32_t stepOfReceive(ActionId producer, RankId from, StageId reader,
                         RankId to, uint8_t slotBit) const {
    Action action = program[producer];
    auto consumer =
        index.definer(action.pipe, reader, action.microbatch, slotBit);
    // Verify reports that it is missing, or misplaced.
    if (!consumer || !program.rows(to).contains(*consumer))
      return to.value + 1 == firstStep.size() ? steps.size() - 1
                                              : firstStep[to.value + 1] - 1;
    if (style != CallStyle::Ring)
      return stepOf[consumer->value];
    unsigned side = sideOf(slotBit);
    int64_t turns = int64_t(from.value) - int64_t(to.value);
    int64_t number =
        numberOf[producer.value] + 1 + (side == 0 ? turns : -turns);
    number = std::clamp<int64_t>(number, 0, numberOf[consumer->value]);
    return stepsOf[side][firstOf[side][to.value] + number];
  }

  /// Calls `visit(step, receive)` for each message.
  template <class Visit> void forEachReceive(Visit visit) const {
    for (RankId rank : program.ranks())
      for (ActionId row : program.rows(rank)) {
        Action action = program[row];
        forEachMessage(
            program, index, action, [&](uint8_t slotBit, StageId reader) {
              RankId to = program.rankOfStage(action.pipe, reader);
              visit(stepOfReceive(row, rank, reader, to, slotBit),
                    Post{row, reader, slotBit,
                         slotBit == slot::Output ? RecvPrev : RecvNext, rank});
            });
      }
  }

  /// Sorts the messages by the step before which they are received.
  void findReceives() {
    receiveStarts.assign(steps.size() + 1, 0);
    forEachReceive([&](uint32_t step, Post) { ++receiveStarts[step + 1]; });
    std::partial_sum(receiveStarts.begin(), receiveStarts.end(),
                     receiveStarts.begin());
    receives.resize(receiveStarts.back());
    std::vector<uint32_t> next = receiveStarts;
    forEachReceive(
        [&](uint32_t step, Post receive) { receives[next[step]++] = receive; });
  }

  void writeRank(RankId rank, CommWriter &writer) {
    uint32_t step = firstStep[rank.value];
    writeCalls(rank, step, {}, writer);
    for (ActionId row = program.begin(rank); row != program.end(rank);) {
      Step own = stepAt(program, rank, row, style);
      while (writer.next(rank) != own.end)
        writer.copyItem(rank);
      for (; own.slots && row != own.end; ++row.value)
        addSends(row);
      row = own.end;
      if (!own.slots)
        continue;
      writeCalls(rank, step + 1, steps[step], writer);
      ++step;
    }
  }

  void addSends(ActionId row) {
    Action action = program[row];
    forEachMessage(
        program, index, action, [&](uint8_t slotBit, StageId reader) {
          posts.push_back({row, reader, slotBit,
                           slotBit == slot::Output ? SendNext : SendPrev,
                           program.rankOfStage(action.pipe, reader)});
        });
  }

  /// Posts the sends in `posts`, of the step `before`, and the receives for the
  /// step number `step`.
  void writeCalls(RankId rank, uint32_t step, StepInfo before,
                  CommWriter &writer) {
    for (uint32_t i = receiveStarts[step]; i != receiveStarts[step + 1]; ++i)
      posts.push_back(receives[i]);
    sortPosts(callOrder);
    numberCalls(before, steps[step]);
    sortPosts(posting == Posting::Batch ? batchOrder
              : rank.value % 2 == 0     ? evenOrder
                                        : oddOrder);
    std::optional<uint32_t> call;
    for (const Post &post : posts) {
      bool joined = posting == Posting::Batch && call == post.call;
      call = post.call;
      Action producer = program[post.producer];
      if (post.direction == SendPrev || post.direction == SendNext)
        writer.send(producer, rank, post.slotBit, post.reader, joined);
      else
        writer.receive(producer, post.slotBit, post.reader, joined);
    }
    posts.clear();
  }

  void sortPosts(const uint8_t (&order)[4]) {
    if (posts.size() > 1)
      llvm::sort(posts, [&](const Post &a, const Post &b) {
        return std::tuple(a.call, order[a.direction], a.producer, a.reader) <
               std::tuple(b.call, order[b.direction], b.producer, b.reader);
      });
  }

  /// Deals the posts out to calls, by what they have in common.
  void numberCalls(StepInfo before, StepInfo after) {
    // A ring has one call, except where it turns from forwards to backwards.
    bool changesDirection = after.slots != 0 && before.slots != after.slots &&
                            before.slots != slot::crossStage &&
                            after.slots != slot::crossStage;
    bool isWhole =
        style == CallStyle::Ring && before.slots != 0 && !changesDirection;
    if (isWhole || posts.size() < 2)
      return;
    // An exchange is part of a phase.
    bool isExchange =
        style == CallStyle::Exchange && before.phase == after.phase;
    firstOfCall.clear();
    for (Post &post : posts) {
      bool sends = post.direction == SendPrev || post.direction == SendNext;
      bool isNext = post.direction == SendNext || post.direction == RecvNext;
      uint64_t common = isExchange ? post.peer.value * uint64_t(2) + isNext
                        : style == CallStyle::Ring
                            ? (sends ? 0 : 1 + isNext)
                            : post.peer.value * uint64_t(4) + post.direction;
      post.call =
          firstOfCall.try_emplace(common, firstOfCall.size()).first->second;
    }
  }

  const Program &program = plan.program;
  PassContext &context = plan.context;
  const ProgramIndex &index = Analyses(program).index();
  const CallStyle style = plan.calls;
  std::vector<uint32_t> firstStep{}; ///< By rank.
  std::vector<StepInfo> steps{};     ///< By number; no slots at a rank's end.
  std::vector<uint32_t> stepOf{};    ///< By row.
  std::vector<uint32_t> numberOf{};  ///< By row: among those of its rank that
                                     ///< make the same slot.
  /// For outputs and gradients: the steps of what makes them, and by rank the
  /// first of these.
  std::vector<uint32_t> stepsOf[2]{}, firstOf[2]{};
  std::vector<uint32_t> receiveStarts{}; ///< Into `receives`; by step.
  std::vector<Post> receives{};
  SmallVector<Post> posts{}; ///< Of the place that is being written.
  llvm::SmallDenseMap<uint64_t, uint32_t> firstOfCall{};
};

} // namespace

std::optional<Program> ppcc::fuseMegatron(const FusePlan &plan) {
  return Megatron{plan, Posting::Batch}.run();
}

std::optional<Program> ppcc::fuseMegatronEvenOdd(const FusePlan &plan) {
  return Megatron{plan, Posting::EvenOdd}.run();
}
