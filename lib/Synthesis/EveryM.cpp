// Looks for an order that goes on in one way for all numbers of microbatches.
#include "Task.h"

using namespace ppcc;
using namespace ppcc::synthesis;

namespace {

/// An order that goes on, what it takes, and its proof.
struct Way {
  std::vector<Growth> growths; ///< By remainder.
  Time value = 0, growth = 0;  ///< On average; of a period, over all.
  Proof proof;
  int64_t least = 1; ///< From there on it is right.

  /// In the long run first.
  bool operator<(const Way &other) const {
    decimal::Sum mine = growths.size(), its = other.growths.size();
    return std::pair(growth * its * its, value) <
           std::pair(other.growth * mine * mine, other.value);
  }
};
/// In numbers that the placement admits.
static constexpr int64_t longestPeriod = 4;
static constexpr int64_t mostTried = 256;

class EverySearch {
public:
  explicit EverySearch(Task &task) : task(task) {}

  std::optional<Synthesized> find() {
    auto *given = findBy(task.asked.request.params, task.asked.free,
                         &sema::ParamValue::name);
    int64_t told = 0;
    if (given && StringRef(given->value).getAsInteger(10, told))
      told = 0;
    int64_t shown = std::max<int64_t>(told, 1);
    while (!at(shown) && !told && shown < mostTried)
      shown *= 2;
    if (!at(shown)) {
      task.instance(paramsFor(shown)); // Of few there may be none at all.
      return std::nullopt;
    }
    // From so many on, policies have mostly found their pace.
    constexpr int tries = 2;
    int64_t from = std::max<int64_t>({told, task.program.numRanks() * 6, 24});
    for (int i = 0; i != tries; ++i, from *= 2)
      for (bool provesAll : {false, true})
        if (auto way = wayFrom(from, provesAll))
          return tell(*way, told);
    task.refuse("no order was found that goes on in one way" +
                (whyNot.empty() ? "" : " and is proven: " + whyNot));
    return std::nullopt;
  }

private:
  Task::Params paramsFor(int64_t microbatches) const {
    Task::Params params = task.asked.request.params;
    llvm::erase_if(params, [&](const auto &value) {
      return value.name == task.asked.free;
    });
    params.push_back({task.asked.free, std::to_string(microbatches)});
    return params;
  }
  /// The placement with so many microbatches, made once; null where there is
  /// none.
  const Instance *at(int64_t microbatches) {
    auto [place, isNew] = instances.try_emplace(microbatches);
    if (isNew) {
      Session quiet(task.session.sources);
      Task one(task.asked, quiet);
      place->second = one.instance(paramsFor(microbatches));
      if (place->second)
        task.program = std::move(one.program);
    }
    return place->second.get();
  }
  /// The next that is admitted: placements may admit multiples of their ranks
  /// alone, and up to some number.
  int64_t nextFrom(int64_t m) {
    for (int64_t end = m + mostTried; m != end && !at(m);)
      ++m;
    return m;
  }
  static std::vector<Range> pipesOf(const Instance &instance) {
    std::vector<Range> pipes;
    for (const Pipe &pipe : instance.program.pipes())
      pipes.push_back({pipe.firstMicrobatch, pipe.endMicrobatch()});
    return pipes;
  }

  /// The best that is proven of what policies make of `from` microbatches and
  /// the next few. Proofs take longer than orders: of the best ones, or, where
  /// none of these is right, of all that are better than the right one so far.
  std::optional<Way> wayFrom(int64_t from, bool provesAll) {
    from = nextFrom(from);
    const Instance *first = at(from);
    step = nextFrom(from + 1) - from;
    if (!first || !at(from + step))
      return std::nullopt;
    constexpr size_t mostProofs = 4, mostWrong = 50;
    std::vector<Way> ways;
    size_t right = 0, wrong = 0;
    SearchOptions options;
    options.budget = task.left();
    options.refines = false;
    options.accepts = [&](const Policy &policy, uint64_t &actions) {
      auto way = growthOf(policy, from, actions);
      if (!way)
        return false;
      if (provesAll) {
        if (right == mostProofs || wrong == mostWrong ||
            (!ways.empty() && !(*way < ways.back())))
          return false;
        bool isRight = prove(*way);
        ++(isRight ? right : wrong);
        if (!isRight)
          return false;
      }
      ways.push_back(std::move(*way));
      return true;
    };
    task.search(first->problem, {}, std::move(options));
    llvm::stable_sort(ways);
    ways.resize(std::min(ways.size(), mostProofs));
    for (Way &way : ways)
      if (provesAll || prove(way))
        return std::move(way);
    return std::nullopt;
  }

  /// Whether each pipe grows by as much from every number on: what is written
  /// goes on as it begins, and `M / 3` of a placement does not within 3.
  bool growsEvenly(int64_t from, int64_t period) {
    constexpr int64_t numLooked = 12;
    if (task.program.pipes().size() == 1)
      return true;
    std::optional<std::vector<int64_t>> growth;
    for (int64_t m = from; m != from + numLooked * step; m += step) {
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
  std::optional<Way> growthOf(const Policy &policy, int64_t from,
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
        if (decoder.run(policy, one.order))
          one.value = Runner(instance->problem).run(one.order);
        actions += decoder.steps() + instance->problem.numActions;
      }
      return one;
    };
    for (int64_t period = step; period <= longestPeriod * step;
         period += step) {
      if (!growsEvenly(from, period))
        continue;
      Way way;
      int64_t admitted = 0;
      for (int64_t rest = 0; rest != period; ++rest) {
        int64_t m = from + (rest + period - from % period) % period;
        if (!at(m) && !at(m + period)) {
          way.growths.push_back({});
          continue;
        }
        const Run &one = run(m), &longer = run(m + period);
        if (!one.value || !longer.value)
          break;
        ++admitted;
        way.value += *one.value;
        // What grows more slowly than its bound has not found its pace.
        way.growth += std::max(*longer.value - *one.value,
                               at(m + period)->problem.bound.time -
                                   at(m)->problem.bound.time);
        way.growths.push_back({&at(m)->problem, m, one.order, longer.order,
                               pipesOf(*at(m)), pipesOf(*at(m + period))});
      }
      if (way.growths.size() != size_t(period) || admitted == 0)
        continue;
      // To find what repeats itself takes longer than to run it.
      constexpr unsigned costOfText = 2;
      actions += at(from)->problem.numActions * costOfText * admitted;
      way.value /= admitted;
      way.growth = way.growth * period / admitted;
      if (auto family = writeFamily(task.program, way.growths,
                                    task.headOf(std::nullopt))) {
        way.least = family->least;
        return way;
      }
    }
    return std::nullopt;
  }

  /// Whether it is right from some number on, which then is its least. That
  /// ranks keep to their limits is seen to where it is written.
  bool prove(Way &way) {
    WrittenHead head = task.headOf(std::nullopt);
    while (true) {
      Session quiet(task.session.sources);
      ProveRequest request;
      request.byData = task.asked.request.comm.order == CommOrder::None;
      auto family = writeFamily(task.program, way.growths, head, way.least);
      if (!family)
        return false;
      request.compile = task.requestOf(family->text, quiet);
      std::string misuse;
      auto proof = ppcc::prove(request, quiet, misuse);
      if (!proof)
        return false;
      if (proof->isRight()) {
        way.proof = std::move(*proof);
        return true;
      }
      for (const ProvenRange &range : proof->ranges) {
        if (range.verdict == Verdict::Right ||
            range.verdict == Verdict::Excluded)
          continue;
        if (!range.to) {
          whyNot = range.reason;
          return false;
        }
        way.least = std::max(way.least, *range.to + 1);
      }
    }
  }

  std::optional<Synthesized> tell(const Way &way, int64_t told) {
    Synthesized result;
    result.proof = way.proof;
    result.least = way.least;
    result.told = std::max(told, way.least);
    if (!told)
      result.told = std::max(
          result.told, llvm::find_if(way.growths, [](const Growth &growth) {
                         return growth.problem;
                       })->microbatches);
    result.told = nextFrom(result.told);
    const Instance *instance = at(result.told);
    auto family = writeFamily(task.program, way.growths,
                              task.headOf(std::nullopt), way.least);
    if (!instance || !family) {
      task.refuse(fmt::format("the placement has none of the numbers from {} "
                              "on for which the order is proven",
                              way.least));
      return std::nullopt;
    }
    result.text = std::move(family->text);
    result.compiled = task.compileText(result.text, task.session,
                                       {{"M", std::to_string(result.told)}});
    if (!result.compiled || !task.tell(instance->problem, result))
      return std::nullopt;
    result.text = task.commentOf(result) + result.text;
    return result;
  }

  Task &task;
  std::map<int64_t, std::unique_ptr<Instance>> instances;
  int64_t step = 1;   ///< From one number that is admitted to the next.
  std::string whyNot; ///< A way is not proven.
};

} // namespace

std::optional<Synthesized> synthesis::findForAll(Task &task) {
  return EverySearch(task).find();
}
