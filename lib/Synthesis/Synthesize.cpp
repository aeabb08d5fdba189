// Leads a placement to a schedule.
#include "ppcc/Synthesis/Synthesize.h"
#include "InitialOrders.h"

#include "ppcc/Analysis/Report/Report.h"

using namespace ppcc;
using namespace ppcc::synthesis;

namespace {

/// Whether ranks do the same, wherever that is written.
bool areSame(const Program &a, const Program &b) {
  return a.size() == b.size() &&
         llvm::all_of(
             a.ranks(),
             [&](RankId rank) { return a.end(rank) == b.end(rank); }) &&
         llvm::all_of(a.rows(), [&](ActionId row) {
           Action one = a[row], other = b[row];
           other.phase = one.phase;
           other.site = one.site;
           return one == other;
         });
}

/// The search for one number of microbatches.
struct OneSearch {
  SynthesisContext &context;
  const Problem &problem;
  uint64_t budget;

  std::optional<SynthesisResult> find() {
    if (!initialOrders.readFrom())
      return std::nullopt;
    SearchOptions options;
    // The rest is for the candidates, and the text.
    uint64_t text = context.costOfText(problem),
             evaluation = context.costOfEvaluation(problem);
    options.budget =
        budget - std::min({budget / 2, std::max(budget / 4, text + evaluation),
                           text + 20 * evaluation});
    options.onBest = context.userRequest.onBest;
    options.moreOrders = [&] {
      initialOrders.readLibrary();
      return initialOrders.orders();
    };
    // Longer messages must fit the type of times, too.
    bool isRobust = context.userRequest.ofJitter &&
                    Jitter(context.program).isAny() &&
                    std::reduce(problem.work.begin(), problem.work.end()) <
                        Durations::maxSum / 8;
    if (isRobust)
      options.budget /= 2; // The rest is for runs under jitter.
    SearchResult found =
        context.search(problem, initialOrders.orders(), options);
    if (found.order.empty()) {
      context.refuse("no order was found within this effort");
      return std::nullopt;
    }
    if (isRobust)
      addRobust(options, found);
    return compileFound(found);
  }

  /// Adds orders that are good where messages take longer: they leave room for
  /// actions that do.
  void addRobust(SearchOptions options, SearchResult &found) {
    std::vector<Order> known = found.others;
    known.push_back(found.order);
    options.budget /= 8;
    options.onBest = nullptr;
    options.moreOrders = nullptr;
    for (Time eighths : {1, 2, 4, 8}) {
      Workload spaced = problem.load;
      for (Workload::Stage &stage : spaced.stages)
        for (auto *edges : {&stage.below, &stage.above})
          for (Workload::Edge &edge : *edges)
            if (spaced.stages[edge.stage].rank != stage.rank)
              edge.latency += stage.time[Workload::F] * eighths / 8;
      Problem slower(spaced, problem.objective, problem.plan);
      auto robust = context.search(slower, known, options);
      if (!robust.order.empty())
        found.others.insert(found.others.begin(), std::move(robust.order));
    }
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
    Choice best{&found.order, std::nullopt,
                context.evaluate(problem, found.order, std::nullopt)};
    std::optional<Time> &value = best.evaluation.value;
    auto isDone = [&] {
      return value && (*value <= found.value ||
                       context.actions + context.costOfText(problem) >=
                           context.budget());
    };
    Runner byData(problem); // A transport only makes it later.
    auto isPromising = [&](const Order &order) {
      return !value || problem.objective == Objective::Span ||
             byData.run(order) < value;
    };
    auto offer = [&](const Order &order, std::optional<CommOrder> orderOfComm) {
      if (isDone() || !isPromising(order))
        return;
      auto evaluation = context.evaluate(problem, order, orderOfComm);
      if (evaluation.value && (!value || *evaluation.value < *value))
        best = {&order, orderOfComm, std::move(evaluation)};
    };
    if (!comm.order && !comm.fusion)
      for (const CommOrderInfo &info : commOrders())
        if (info.order != CommOrder::None && info.order != CommOrder::Best)
          offer(found.order, info.order);
    std::optional<CommOrder> with = best.comm;
    for (const Order &order : found.others)
      offer(order, with);
    if (!isDone())
      initialOrders.readLibrary();
    for (const Order &order : initialOrders.orders())
      offer(order, with);
    return best;
  }

  std::optional<SynthesisResult> compileFound(const SearchResult &found) {
    Choice choice = choose(found);
    SynthesisResult result;
    result.order = *choice.order;
    result.origin = initialOrders.originOf(result.order);
    result.text = write(context.program, problem, context.headOf(choice.comm),
                        &result.order, context.left() * 4);
    Session quiet(&context.session.sources.fileSystem());
    result.compiled = context.compileText(result.text, quiet);
    if (!result.compiled) // Safe in no way: says why.
      result.compiled = context.compileText(result.text, context.session);
    if (!result.compiled || !context.measure(found.bound, result))
      return std::nullopt;
    if (choice.evaluation.value &&
        !areSame(result.compiled.program, choice.evaluation.compiled.program)) {
      context.refuse("internal error: the text is not that of the order");
      return std::nullopt;
    }
    result.text = context.commentOf(result) + result.text;
    if (context.userRequest.certifies)
      result.certificate = context.certify(problem, result.order, result.bound);
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
  auto valueOf = [&](const SynthesisResult &of) {
    auto figure = context.userRequest.ofJitter;
    return figure && of.jitter ? *of.jitter.**figure : of.value;
  };
  // The quick search may have been wrong about doing without.
  context.plan->ofStage.assign(context.plan->ofStage.size(), {});
  Instance kept(context.program, context.userRequest, context.backward(),
                &*context.plan);
  if (kept.problem.fitsMemory())
    if (auto other = OneSearch{context, kept.problem, context.left()}.find();
        other && valueOf(*other) < valueOf(*result))
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
