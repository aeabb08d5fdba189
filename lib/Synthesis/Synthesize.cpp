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
  OneSearch(Task &task, const Problem &problem, uint64_t budget)
      : task(task), problem(problem), budget(budget), known(task, problem) {}

  std::optional<Synthesized> find() {
    if (!known.readFrom())
      return std::nullopt;
    SearchOptions options;
    options.budget = budget;
    options.onBest = task.asked.onBest;
    // Greedy orders are quick, and often enough.
    SearchOptions quick = options;
    quick.refines = false;
    quick.budget =
        std::min<uint64_t>(options.budget, uint64_t(problem.numActions) * 16);
    Found found = task.search(problem, known.orders(), std::move(quick));
    if (found.order.empty() || found.value > problem.bound.time) {
      known.readLibrary();
      if (!found.order.empty())
        known.add(found.order);
      options.budget -= std::min(options.budget, found.actions);
      Found better = task.search(problem, known.orders(), std::move(options));
      if (!better.order.empty())
        found = std::move(better);
    }
    if (!found.order.empty())
      return compileFound(found);
    task.refuse("nothing was found with so little effort");
    return std::nullopt;
  }

private:
  /// An order of the actions with one of the messages.
  struct Choice {
    const Order *order;
    std::optional<CommOrder> comm;
    Task::Judged judged;
  };

  /// The best found order with the best order of its messages, unless that is
  /// given; where messages cost something, the next best orders, too.
  Choice choose(const Found &found) {
    const CommRequest &comm = task.asked.request.comm;
    Choice best{&found.order, std::nullopt, {}};
    auto offer = [&](const Order &order, std::optional<CommOrder> orderOfComm) {
      Task::Judged judged = task.judge(problem, order, orderOfComm);
      if (judged.value &&
          (!best.judged.value || *judged.value < *best.judged.value))
        best = {&order, orderOfComm, std::move(judged)};
      return best.judged.value && *best.judged.value <= found.value;
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
    for (const Order &order : known.orders())
      if (offer(order, with))
        break;
    return best;
  }

  std::optional<Synthesized> compileFound(const Found &found) {
    Choice choice = choose(found);
    Synthesized result;
    result.order = *choice.order;
    result.origin = known.originOf(result.order);
    result.text = std::move(choice.judged.text);
    result.compiled = std::move(choice.judged.compiled);
    if (!result.compiled) // Safe in no way: says why.
      result.compiled = task.compileText(
          write(task.program, problem, result.order, task.headOf(choice.comm)),
          task.session);
    if (!result.compiled || !task.tell(problem, result))
      return std::nullopt;
    result.text = task.commentOf(result) + result.text;
    return result;
  }

  Task &task;
  const Problem &problem;
  uint64_t budget;
  KnownOrders known;
};

} // namespace

std::optional<Synthesized> synthesis::findOne(Task &task) {
  if (!task.readPlacement(task.asked.request.params) ||
      ((task.asked.recompute || task.asked.offload) && !chooseSavings(task)))
    return std::nullopt;
  auto instance = task.instance();
  if (!instance)
    return std::nullopt;
  uint64_t budget = task.left();
  if (!task.savings || !task.savings->isSome())
    return OneSearch(task, instance->problem, budget).find();
  auto result = OneSearch(task, instance->problem, budget * 3 / 4).find();
  if (!result || result->isOptimal())
    return result;
  // The quick search may have been wrong about doing without.
  task.savings->ofStage.assign(task.savings->ofStage.size(), {});
  Instance kept(task.program, task.asked, task.backward(), &*task.savings);
  if (kept.problem.hasRoom())
    if (auto other = OneSearch(task, kept.problem, task.left()).find();
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
