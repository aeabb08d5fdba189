// Leads a placement to a schedule.
#include "ppcc/Synthesis/Synthesize.h"
#include "KnownOrders.h"

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/Report.h"

using namespace ppcc;
using namespace ppcc::synthesis;

namespace {

/// The search for one number of microbatches.
class OneSearch {
public:
  OneSearch(Task &task, const Problem &problem)
      : task(task), problem(problem), known(task, problem) {}

  std::optional<Synthesized> find() {
    if (!known.readFrom())
      return std::nullopt;
    SearchOptions options;
    options.stop = task.asked.stop;
    options.budget = task.budget();
    if (task.asked.onBest)
      options.onBest = [&](Time best, uint64_t) {
        task.asked.onBest(best, problem.bound.time);
      };
    // Greedy orders are quick, and often enough.
    SearchOptions quick = options;
    quick.refines = false;
    quick.budget =
        std::min<uint64_t>(options.budget, uint64_t(problem.numActions) * 16);
    Found found = search(problem, known.orders(), quick);
    count(found);
    if (found.order.empty() || found.value > problem.bound.time) {
      known.readLibrary();
      if (!found.order.empty())
        known.add(found.order);
      options.budget -= std::min(options.budget, found.actions);
      Found better = search(problem, known.orders(), options);
      count(better);
      if (!better.order.empty())
        found = std::move(better);
    }
    if (!found.order.empty())
      return compileFound(found);
    task.refuse("nothing was found with so little effort");
    return std::nullopt;
  }

private:
  void count(const Found &found) {
    task.evaluations += found.evaluations;
    task.actions += found.actions;
  }

  /// An order of the actions with one of the messages, and what they take.
  struct Choice {
    const Order *order;
    std::optional<CommOrder> comm;
    Time value;
    Compiled compiled;
  };

  /// What the transport makes of a choice; nothing where it is not safe.
  std::optional<Time> valueOf(const Order &order, std::optional<CommOrder> comm,
                              Compiled &compiled) const {
    Session quiet(&task.session.sources.fileSystem());
    compiled = task.compileText(
        write(task.program, problem, order, task.headOf(comm)), quiet);
    const TimedRun *timed =
        compiled ? Analyses(compiled.program)
                       .timedRun(compiled.comm.transports.front(), quiet.diags)
                 : nullptr;
    if (!timed)
      return std::nullopt;
    if (task.asked.objective == Objective::Makespan)
      return timed->simulation.makespan;
    Time span = 0;
    for (const RankTimes &times :
         rankTimes(compiled.program, timed->durations, timed->simulation))
      span = std::max(span, times.span());
    return span;
  }

  /// The best found order with the best order of its messages, unless that is
  /// given; where messages cost something, the next best orders, too.
  Choice choose(const Found &found) {
    const CommRequest &comm = task.asked.request.comm;
    Choice best{
        &found.order, std::nullopt, std::numeric_limits<Time>::max(), {}};
    auto offer = [&](const Order &order, std::optional<CommOrder> orderOfComm) {
      Compiled compiled;
      auto value = valueOf(order, orderOfComm, compiled);
      if (value && *value < best.value)
        best = {&order, orderOfComm, *value, std::move(compiled)};
      return best.value <= found.value;
    };
    if (offer(found.order, std::nullopt))
      return best;
    if (!comm.order && !comm.fusion)
      for (const CommOrderInfo &info : commOrders())
        if (info.order != CommOrder::None && info.order != CommOrder::Best &&
            offer(found.order, info.order))
          return best;
    std::optional<CommOrder> with = best.comm;
    for (const Order &order : found.others)
      if (offer(order, with))
        return best;
    known.readLibrary();
    others = known.orders();
    for (const Order &order : others)
      if (offer(order, with))
        break;
    return best;
  }

  std::optional<Synthesized> compileFound(const Found &found) {
    Choice choice = choose(found);
    Synthesized result;
    result.order = *choice.order;
    result.origin = known.originOf(result.order);
    WrittenHead head = task.headOf(choice.comm);
    result.compiled = std::move(choice.compiled);
    if (!result.compiled) // Safe in no way: says why.
      result.compiled = task.compileText(
          write(task.program, problem, result.order, head), task.session);
    if (!result.compiled || !task.tell(problem, result))
      return std::nullopt;
    head.comment = task.commentOf(result);
    result.text = write(task.program, problem, result.order, head);
    return result;
  }

  Task &task;
  const Problem &problem;
  KnownOrders known;
  std::vector<Order> others; ///< Of those that are known, while one is chosen.
};

} // namespace

std::optional<Synthesized> synthesis::findOne(Task &task) {
  if (!task.readPlacement(task.asked.request.params) ||
      (task.asked.recompute && !chooseRecomputed(task)))
    return std::nullopt;
  auto instance = task.instance();
  if (!instance)
    return std::nullopt;
  auto result = OneSearch(task, instance->problem).find();
  if (!result || result->isOptimal() || !task.recomputed ||
      task.recomputed->none())
    return result;
  // The quick search may have been wrong about doing without.
  task.recomputed->reset();
  Instance kept(task.program, task.asked, &*task.recomputed);
  if (kept.problem.hasRoom())
    if (auto other = OneSearch(task, kept.problem).find();
        other && other->value < result->value)
      return other;
  return result;
}

std::optional<Synthesized> ppcc::synthesize(const SynthesisRequest &request,
                                            Session &session) {
  auto begin = std::chrono::steady_clock::now();
  Task task(request, session);
  if (!request.layers.empty() && !chooseLayout(task))
    return std::nullopt;
  auto result = request.free.empty() ? findOne(task) : findForAll(task);
  if (result) {
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    result->seconds = took.count();
    result->evaluations = task.evaluations;
    result->actions = task.actions;
  }
  return result;
}
