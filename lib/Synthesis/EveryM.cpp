// Looks for an order that goes on in one way for all numbers of microbatches.
#include "SynthesisContext.h"

using namespace ppcc;
using namespace ppcc::synthesis;

namespace {

/// An order that goes on, what it takes, and its proof.
struct PeriodicOrder {
  std::vector<OrderExtension> extensions; ///< By remainder.
  Time value = 0, growth = 0; ///< On average; of a period, over all.
  Proof proof;
  int64_t minMicrobatches = 1; ///< From there on it is right.

  /// In the long run first.
  bool operator<(const PeriodicOrder &other) const {
    decimal::Sum mine = extensions.size(), its = other.extensions.size();
    return std::pair(growth * its * its, value) <
           std::pair(other.growth * mine * mine, other.value);
  }
};
/// In numbers that the placement admits.
static constexpr int64_t maxPeriod = 4;
static constexpr int64_t maxTried = 256;

struct EverySearch {
  SynthesisContext &context;

  std::optional<SynthesisResult> find() {
    auto *given = findBy(context.userRequest.request.params,
                         context.userRequest.free, &sema::ParamValue::name);
    int64_t reportedM = 0;
    if (given && StringRef(given->value).getAsInteger(10, reportedM))
      reportedM = 0;
    int64_t shown = std::max<int64_t>(reportedM, 1);
    while (!at(shown) && !reportedM && shown < maxTried)
      shown *= 2;
    if (!at(shown)) {
      context.instance(paramsFor(shown)); // Of few there may be none at all.
      return std::nullopt;
    }
    // From so many on, policies have mostly found their pace.
    constexpr int tries = 2;
    int64_t from =
        std::max<int64_t>({reportedM, context.program.numRanks() * 6, 24});
    for (int i = 0; i != tries; ++i, from *= 2)
      for (bool provesAll : {false, true})
        if (auto periodicOrder = findPeriodicOrder(from, provesAll))
          return report(*periodicOrder, reportedM);
    context.refuse("no periodic order was found" +
                   (whyNot.empty() ? "" : " and is proven: " + whyNot));
    return std::nullopt;
  }

  SynthesisContext::Params paramsFor(int64_t microbatches) const {
    SynthesisContext::Params params = context.userRequest.request.params;
    llvm::erase_if(params, [&](const auto &value) {
      return value.name == context.userRequest.free;
    });
    params.push_back({context.userRequest.free, std::to_string(microbatches)});
    return params;
  }
  /// The placement with so many microbatches, made once; null where there is
  /// none.
  const Instance *at(int64_t microbatches) {
    auto [place, isNew] = instances.try_emplace(microbatches);
    if (isNew) {
      Session quiet(context.session.sources);
      SynthesisContext one(context.userRequest, quiet);
      place->second = one.instance(paramsFor(microbatches));
      if (place->second)
        context.program = std::move(one.program);
    }
    return place->second.get();
  }
  /// The next that is admitted: placements may admit multiples of their ranks
  /// alone, and up to some number.
  int64_t nextAdmitted(int64_t m) {
    for (int64_t end = m + maxTried; m != end && !at(m);)
      ++m;
    return m;
  }
  static std::vector<MicrobatchRange> pipesOf(const Instance &instance) {
    std::vector<MicrobatchRange> pipes;
    for (const Pipe &pipe : instance.program.pipes())
      pipes.push_back({pipe.firstMicrobatch, pipe.endMicrobatch()});
    return pipes;
  }

  /// The best that is proven of what policies make of `from` microbatches and
  /// the next few. Proofs take longer than orders: of the best ones, or, where
  /// none of these is right, of all that are better than the right one so far.
  std::optional<PeriodicOrder> findPeriodicOrder(int64_t from, bool provesAll) {
    from = nextAdmitted(from);
    const Instance *first = at(from);
    step = nextAdmitted(from + 1) - from;
    if (!first || !at(from + step))
      return std::nullopt;
    constexpr size_t maxProofs = 4, maxRefuted = 50;
    std::vector<PeriodicOrder> periodicOrders;
    size_t proven = 0, refuted = 0;
    SearchOptions options;
    options.budget = context.left();
    options.refines = false;
    options.accepts = [&](const Policy &policy, uint64_t &actions) {
      auto periodicOrder = extend(policy, from, actions);
      if (!periodicOrder)
        return false;
      if (provesAll) {
        if (proven == maxProofs || refuted == maxRefuted ||
            (!periodicOrders.empty() &&
             !(*periodicOrder < periodicOrders.back())))
          return false;
        bool isValid = prove(*periodicOrder);
        ++(isValid ? proven : refuted);
        if (!isValid)
          return false;
      }
      periodicOrders.push_back(std::move(*periodicOrder));
      return true;
    };
    context.search(first->problem, {}, std::move(options));
    llvm::stable_sort(periodicOrders);
    periodicOrders.resize(std::min(periodicOrders.size(), maxProofs));
    for (PeriodicOrder &periodicOrder : periodicOrders)
      if (provesAll || prove(periodicOrder))
        return std::move(periodicOrder);
    return std::nullopt;
  }

  /// Whether each pipe grows by as much from every number on: what is written
  /// goes on as it begins, and `M / 3` of a placement does not within 3.
  bool growsEvenly(int64_t from, int64_t period) {
    constexpr int64_t numProbed = 12;
    if (context.program.pipes().size() == 1)
      return true;
    std::optional<std::vector<int64_t>> growth;
    for (int64_t m = from; m != from + numProbed * step; m += step) {
      const Instance *few = at(m), *more = at(m + period);
      if (!few || !more)
        continue;
      std::vector<int64_t> own;
      for (auto [a, b] : llvm::zip(few->program.pipes(), more->program.pipes()))
        llvm::append_values(own, int64_t(b.firstMicrobatch) - a.firstMicrobatch,
                            int64_t(b.numMicrobatches) - a.numMicrobatches);
      if (growth && own != *growth)
        return false;
      growth = std::move(own);
    }
    return true;
  }

  /// How a policy goes on, with the shortest period that does.
  std::optional<PeriodicOrder> extend(const Policy &policy, int64_t from,
                                      uint64_t &actions) {
    struct Run {
      Order order;
      std::optional<Time> value;
    };
    std::map<int64_t, Run> runs; // Each once.
    auto run = [&](int64_t microbatches) -> const Run & {
      auto [place, isNew] = runs.try_emplace(microbatches);
      Run &one = place->second;
      const Instance *instance = at(microbatches);
      if (isNew && instance) {
        Decoder decoder(instance->problem);
        one.value = decoder.run(policy, one.order);
        actions += decoder.steps();
      }
      return one;
    };
    for (int64_t period = step; period <= maxPeriod * step; period += step) {
      if (!growsEvenly(from, period))
        continue;
      PeriodicOrder periodicOrder;
      int64_t admitted = 0;
      for (int64_t rest = 0; rest != period; ++rest) {
        int64_t m = from + (rest + period - from % period) % period;
        if (!at(m) && !at(m + period)) {
          periodicOrder.extensions.push_back({});
          continue;
        }
        const Run &one = run(m), &longer = run(m + period);
        if (!one.value || !longer.value)
          break;
        ++admitted;
        periodicOrder.value += *one.value;
        // What grows more slowly than its bound has not found its pace.
        periodicOrder.growth += std::max(*longer.value - *one.value,
                                         at(m + period)->problem.bound.time -
                                             at(m)->problem.bound.time);
        periodicOrder.extensions.push_back({&at(m)->problem, m, one.order,
                                            longer.order, pipesOf(*at(m)),
                                            pipesOf(*at(m + period))});
      }
      if (periodicOrder.extensions.size() != size_t(period) || admitted == 0)
        continue;
      // To find what repeats itself takes longer than to run it.
      constexpr unsigned costOfText = 2;
      actions += at(from)->problem.numActions * costOfText * admitted;
      periodicOrder.value /= admitted;
      periodicOrder.growth = periodicOrder.growth * period / admitted;
      if (auto family = writeFamily(context.program, periodicOrder.extensions,
                                    context.headOf(std::nullopt))) {
        periodicOrder.minMicrobatches = family->minMicrobatches;
        return periodicOrder;
      }
    }
    return std::nullopt;
  }

  /// Whether it is right from some number on, which then is its least. That
  /// ranks keep to their limits is seen to where it is written.
  bool prove(PeriodicOrder &periodicOrder) {
    ScheduleHeader head = context.headOf(std::nullopt);
    while (true) {
      Session quiet(context.session.sources);
      ProveRequest request;
      request.dataOnly =
          context.userRequest.request.comm.order == CommOrder::None;
      auto family = writeFamily(context.program, periodicOrder.extensions, head,
                                periodicOrder.minMicrobatches);
      if (!family)
        return false;
      request.compile = context.requestOf(family->text, quiet);
      std::string usageError;
      auto proof = ppcc::prove(request, quiet, usageError);
      if (!proof)
        return false;
      if (proof->isValid()) {
        periodicOrder.proof = std::move(*proof);
        return true;
      }
      for (const ProvenRange &range : proof->ranges) {
        if (range.verdict == Verdict::Valid ||
            range.verdict == Verdict::Excluded)
          continue;
        if (!range.to) {
          whyNot = range.reason;
          return false;
        }
        periodicOrder.minMicrobatches =
            std::max(periodicOrder.minMicrobatches, *range.to + 1);
      }
    }
  }

  std::optional<SynthesisResult> report(const PeriodicOrder &periodicOrder,
                                        int64_t reportedM) {
    SynthesisResult result;
    result.proof = periodicOrder.proof;
    result.minMicrobatches = periodicOrder.minMicrobatches;
    result.reportedM = std::max(reportedM, periodicOrder.minMicrobatches);
    if (!reportedM)
      result.reportedM = std::max(
          result.reportedM, llvm::find_if(periodicOrder.extensions,
                                          [](const OrderExtension &growth) {
                                            return growth.problem;
                                          })
                                ->microbatches);
    result.reportedM = nextAdmitted(result.reportedM);
    const Instance *instance = at(result.reportedM);
    auto family = writeFamily(context.program, periodicOrder.extensions,
                              context.headOf(std::nullopt),
                              periodicOrder.minMicrobatches);
    if (!instance || !family) {
      context.refuse(fmt::format("the order is proven for numbers from {} on, "
                                 "none of which the placement admits",
                                 periodicOrder.minMicrobatches));
      return std::nullopt;
    }
    result.text = std::move(family->text);
    result.compiled =
        context.compileText(result.text, context.session,
                            {{"M", std::to_string(result.reportedM)}});
    if (!result.compiled || !context.measure(instance->problem.bound, result))
      return std::nullopt;
    result.text = context.commentOf(result) + result.text;
    return result;
  }

  std::map<int64_t, std::unique_ptr<Instance>> instances{};
  int64_t step = 1;     ///< From one number that is admitted to the next.
  std::string whyNot{}; ///< A way is not proven.
};

} // namespace

std::optional<SynthesisResult>
synthesis::synthesizeForAll(SynthesisContext &context) {
  return EverySearch{context}.find();
}
