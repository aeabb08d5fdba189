// Leads a placement to a schedule.
#include "ppcc/Synthesis/Synthesize.h"
#include "InitialOrders.h"

#include "ppcc/Analysis/Report/Report.h"

using namespace ppcc;
using namespace ppcc::synthesis;

namespace {

/// The search for one number of microbatches.
struct OneSearch {
  SynthesisContext &context;
  const Problem &problem;
  uint64_t budget;

  std::optional<SynthesisResult> find() {
    if (!initialOrders.readFrom())
      return std::nullopt;
    SearchOptions options;
    options.budget = budget;
    options.onBest = context.userRequest.onBest;
    // Greedy orders are quick, and often enough.
    SearchOptions quick = options;
    quick.refines = false;
    quick.budget =
        std::min<uint64_t>(options.budget, uint64_t(problem.numActions) * 16);
    SearchResult found =
        context.search(problem, initialOrders.orders(), std::move(quick));
    if (found.order.empty() || found.value > problem.bound.time) {
      initialOrders.readLibrary();
      if (!found.order.empty())
        initialOrders.add(found.order);
      options.budget -= std::min(options.budget, found.actions);
      SearchResult better =
          context.search(problem, initialOrders.orders(), std::move(options));
      if (!better.order.empty())
        found = std::move(better);
    }
    if (!found.order.empty())
      return compileFound(found);
    context.refuse("no order was found within this effort");
    return std::nullopt;
  }

  /// An order of the actions with one of the messages.
  struct Choice {
    const Order *order;
    std::optional<CommOrder> comm;
    SynthesisContext::Evaluation evaluation;
  };

  /// The best found order with the best order of its messages, unless that is
  /// given; where messages cost something, the next best orders, too.
  Choice choose(const SearchResult &found) {
    const CommRequest &comm = context.userRequest.request.comm;
    Choice best{&found.order, std::nullopt, {}};
    auto offer = [&](const Order &order, std::optional<CommOrder> orderOfComm) {
      SynthesisContext::Evaluation evaluation =
          context.evaluate(problem, order, orderOfComm);
      if (evaluation.value && (!best.evaluation.value ||
                               *evaluation.value < *best.evaluation.value))
        best = {&order, orderOfComm, std::move(evaluation)};
      return best.evaluation.value && *best.evaluation.value <= found.value;
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
    initialOrders.readLibrary();
    for (const Order &order : initialOrders.orders())
      if (offer(order, with))
        break;
    return best;
  }

  std::optional<SynthesisResult> compileFound(const SearchResult &found) {
    Choice choice = choose(found);
    SynthesisResult result;
    result.order = *choice.order;
    result.origin = initialOrders.originOf(result.order);
    result.text = std::move(choice.evaluation.text);
    result.compiled = std::move(choice.evaluation.compiled);
    if (!result.compiled) // Safe in no way: says why.
      result.compiled =
          context.compileText(write(context.program, problem, result.order,
                                    context.headOf(choice.comm)),
                              context.session);
    if (!result.compiled || !context.measure(problem, result))
      return std::nullopt;
    result.text = context.commentOf(result) + result.text;
    return result;
  }

  InitialOrders initialOrders{context, problem};
};

} // namespace

std::optional<SynthesisResult>
synthesis::synthesizeForOne(SynthesisContext &context) {
  if (!context.readPlacement(context.userRequest.request.params) ||
      ((context.userRequest.recompute || context.userRequest.offload) &&
       !chooseActivationPlan(context)))
    return std::nullopt;
  auto instance = context.instance();
  if (!instance)
    return std::nullopt;
  uint64_t budget = context.left();
  if (!context.plan || !context.plan->hasAny())
    return OneSearch{context, instance->problem, budget}.find();
  auto result = OneSearch{context, instance->problem, budget * 3 / 4}.find();
  if (!result || result->isOptimal())
    return result;
  // The quick search may have been wrong about doing without.
  context.plan->ofStage.assign(context.plan->ofStage.size(), {});
  Instance kept(context.program, context.userRequest, context.backward(),
                &*context.plan);
  if (kept.problem.fitsMemory())
    if (auto other = OneSearch{context, kept.problem, context.left()}.find();
        other && other->value < result->value)
      return other;
  return result;
}

std::optional<SynthesisResult> ppcc::synthesize(const SynthesisRequest &request,
                                                Session &session) {
  auto begin = std::chrono::steady_clock::now();
  SynthesisContext context(request, session);
  if (!request.layers.empty() && !chooseLayout(context))
    return std::nullopt;
  auto result = request.free.empty() ? synthesizeForOne(context)
                                     : synthesizeForAll(context);
  if (result) {
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    result->seconds = took.count();
    result->evaluations = context.evaluations;
    result->actions = context.actions;
  }
  return result;
}
