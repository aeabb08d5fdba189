// Leads a placement to a schedule.
#include "ppcc/Synthesis/Synthesize.h"
#include "ppcc/Basic/Diagnostics/Instance.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"
#include "ppcc/Basic/Diagnostics/Synthesis.h"

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/Report.h"
#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Parse/Parser.h"
#include "ppcc/Synthesis/Partition.h"
#include "ppcc/Synthesis/Write.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

#include <map>

using namespace ppcc;
using namespace ppcc::synthesis;
using llvm::StringRef;

constexpr auto F = Workload::F, I = Workload::I, W = Workload::W;

namespace {

/// An order with where it is from.
struct Candidate {
  Order order;
  std::string origin;
};

class Synthesis {
public:
  Synthesis(const SynthesisRequest &asked, Session &session)
      : asked(asked), session(session) {}

  std::optional<Synthesized> run() {
    auto begin = std::chrono::steady_clock::now();
    if (!asked.layers.empty() && !chooseLayout())
      return std::nullopt;
    auto result = asked.free.empty() ? findOne() : findForAll();
    if (result) {
      std::chrono::duration<double> took =
          std::chrono::steady_clock::now() - begin;
      result->seconds = took.count();
    }
    return result;
  }

private:
  static Workload::Backward backwardOf(const SynthesisRequest &asked) {
    return asked.fusedBackward ? Workload::Backward::Fused
                               : Workload::Backward::Split;
  }

  /// A placement with its work.
  struct Instance {
    Instance(Program given, const SynthesisRequest &asked)
        : program(std::move(given)), durations(program),
          load(Workload::of(program, durations, backwardOf(asked))),
          problem(load, asked.objective) {}

    Program program;
    Durations durations;
    Workload load;
    Problem problem;
  };

  std::optional<Synthesized> findOne() {
    auto instance = readInstance(asked.request.params);
    if (!instance || !readFrom(instance->problem))
      return std::nullopt;
    return find(instance->problem);
  }

  /// The placement with these parameters; null after a report.
  std::unique_ptr<Instance>
  readInstance(const std::vector<sema::ParamValue> &params) {
    if (!readPlacement(params) || !isInScope())
      return nullptr;
    Durations durations(program);
    if (!fits(Workload::of(program, durations, backwardOf(asked))))
      return nullptr;
    auto instance = std::make_unique<Instance>(program, asked);
    return hasRoom(instance->problem) ? std::move(instance) : nullptr;
  }

  // ---- The layers of stages ----

  /// Sets the layout with which a quick search does best.
  bool chooseLayout() {
    SynthesisRequest bare = asked; // Costs of layers need them.
    bare.request.costs = {};
    Synthesis first(bare, session);
    if (!first.readPlacement(asked.request.params))
      return false;
    program = std::move(first.program);
    uint32_t stages = program.pipes().front().numStages();
    std::string letters = llvm::join(program.stageLayers(), "");
    if (asked.layers != "model") {
      auto parsed = parseLayout(
          asked.layers,
          session.sources.loc(
              session.sources.add("--layers", llvm::MemoryBuffer::getMemBuffer(
                                                  asked.layers, "--layers")),
              0),
          session.diags);
      if (!parsed)
        return false;
      if (parsed->size() != 1)
        return refuse("--layers has bars; what stages get is to be found");
      letters = parsed->front();
    }
    if (letters.size() < stages)
      return refuse(fmt::format("there are {} layers for {} stages",
                                letters.size(), stages));
    auto layoutOf = [&](const Partition &layers) {
      std::vector<StringRef> parts;
      StringRef rest = letters;
      for (uint32_t count : layers) {
        parts.push_back(rest.take_front(count));
        rest = rest.drop_front(count);
      }
      return llvm::join(parts, "|");
    };
    // Only so many, and each quickly: what is best shows by then.
    constexpr unsigned mostPartitions = 2000, turnsEach = 8;
    auto found = searchPartitions(
        letters.size(), stages, mostPartitions,
        [&](const Partition &layers) -> std::optional<Time> {
          if (asked.stop && *asked.stop)
            return std::nullopt;
          Session quiet(&session.sources.fileSystem());
          SynthesisRequest one = asked;
          one.request.layout = layoutOf(layers);
          one.layers.clear();
          Synthesis synthesis(one, quiet);
          auto instance = synthesis.readInstance(one.request.params);
          if (!instance)
            return std::nullopt;
          SearchOptions options;
          options.budget = uint64_t(instance->problem.numActions) * turnsEach;
          options.refines = false;
          Found found = search(instance->problem, {}, options);
          actions += found.actions;
          return found.order.empty() ? std::nullopt
                                     : std::optional(found.value);
        });
    // Without any, what is wrong with an even one is reported.
    asked.request.layout = layoutOf(
        found.empty() ? evenPartition(letters.size(), stages)
                      : found.front().layers);
    return true;
  }

  // ---- The placement ----

  /// `loop:2` as the language writes it, or nothing for a file.
  static std::optional<std::string> namedPlacement(StringRef text) {
    auto [name, chunks] = text.split(':');
    if ((name == "linear" || name == "v") && chunks.empty() &&
        !text.contains(':'))
      return name.str();
    if (name == "loop" || name == "wave")
      return fmt::format("{}({})", name, chunks);
    return std::nullopt;
  }

  bool readPlacement(const std::vector<sema::ParamValue> &params) {
    Request request = asked.request;
    request.params = params;
    request.until = Request::Until::Expanded;
    if (auto placement = namedPlacement(request.input)) {
      request.input = "<placement>.pp";
      session.sources.add(
          request.input,
          llvm::MemoryBuffer::getMemBufferCopy(fmt::format(
              "schedule found(P: int, M: int) {{\n  ranks P;\n  microbatches "
              "M;\n  placement {};\n  on rank r {{ }}\n}}\n",
              *placement)));
    }
    Compiled compiled = compile(request, session);
    if (compiled.status == Compiled::Status::Misused)
      session.diags.report<diag::CannotSynthesize>({}, compiled.misuse);
    if (!compiled || !applyCosts(request.costs, session, compiled.program))
      return false;
    program = std::move(compiled.program);
    return true;
  }

  bool refuse(const std::string &what) {
    session.diags.report<diag::CannotSynthesize>(Place(program.name()), what);
    return false;
  }

  bool isInScope() {
    const CostModel &costs = program.costs();
    if (!program.hasBackward())
      return refuse("it has no backward");
    for (const Pipe &pipe : program.pipes())
      if (pipe.slices != 1)
        return refuse("its microbatches are slices of sequences");
    if (costs.has({Cost::Scale, Cost::ScaleTime, Cost::ScaleMemory,
                   Cost::ScaleBytes, Cost::ScaleAction}))
      return refuse("its microbatches differ");
    if (costs.has({Cost::Node}))
      return refuse("its nodes have costs");
    if (program.totalMicrobatches() == 0)
      return refuse("it has no microbatches");
    return true;
  }

  /// The sums of all times, and the number of actions.
  bool fits(const Workload &load) {
    decimal::Sum time = 0, actions = 0;
    for (const Workload::Stage &stage : load.stages) {
      for (unsigned part = 0; part != Workload::numParts; ++part)
        if (load.hasPart(Workload::Part(part))) {
          time += decimal::Sum(stage.time[part]) * stage.microbatches;
          actions += stage.microbatches;
        }
      for (Workload::Edge edge : stage.below)
        time += decimal::Sum(edge.latency) * stage.microbatches * 2;
    }
    if (time > Durations::maxSum)
      session.diags.report<diag::SimulationTooLong>(Place(program.name()));
    uint64_t most = asked.request.limits.maxActions;
    if (actions > most)
      session.diags.report<diag::TooManyActions>(
          Place(program.name()), static_cast<uint64_t>(actions), most);
    return time <= Durations::maxSum && actions <= most;
  }

  bool hasRoom(const Problem &problem) {
    MemoryModel memory(program);
    bool all = true;
    for (uint32_t rank = 0; rank != problem.numRanks(); ++rank) {
      Amount least = problem.leastRoom(rank);
      if (problem.load.ofRank[rank].empty() || least <= problem.room[rank])
        continue;
      all = false;
      std::vector<std::string> stages;
      for (uint32_t s : problem.load.ofRank[rank])
        stages.push_back(std::to_string(problem.load.stages[s].stage.value));
      session.diags.report<diag::LimitTooSmall>(
          Place(program.name()), rank,
          amount::format(*memory.limitOf(RankId(rank))),
          (stages.size() == 1 ? "stage " : "stages ") +
              llvm::join(stages, ", "),
          amount::format(memory.staticOf(RankId(rank)) + least));
    }
    return all;
  }

  // ---- Schedules to begin with ----

  /// The order of a program with this placement, if it is one of this problem.
  std::optional<Order> orderOf(const Program &other,
                               const Problem &problem) const {
    bool isFused = problem.load.backward == Workload::Backward::Fused;
    if (other.numRanks() != program.numRanks() ||
        other.pipes().size() != program.pipes().size())
      return std::nullopt;
    for (auto [mine, its] : llvm::zip(program.pipes(), other.pipes()))
      if (mine.rankOfStage != its.rankOfStage ||
          mine.firstMicrobatch != its.firstMicrobatch ||
          mine.numMicrobatches != its.numMicrobatches ||
          mine.skipEdges != its.skipEdges || mine.gaps != its.gaps ||
          its.slices != 1)
        return std::nullopt;
    StageNumbering numbering(other.pipes());
    std::vector<uint32_t> next(problem.numOps());
    Order order(other.numRanks());
    for (RankId rank : other.ranks()) {
      Word &word = order[rank.value];
      for (ActionId row : other.rows(rank)) {
        Action action = other[row];
        const KindInfo &info = other.kindOf(action);
        if (!info.isCompute() || info.isDeclared())
          continue;
        uint32_t stage = static_cast<uint32_t>(numbering(action));
        for (auto [part, slotBit] :
             {std::pair(F, slot::Output), std::pair(I, slot::InputGrad),
              std::pair(W, slot::WeightGrad)}) {
          if (!(info.defines & slotBit) || (part == W && isFused))
            continue;
          Op op = opOf(stage, part);
          uint32_t first = other.pipe(action.pipe).firstMicrobatch;
          if (part != W && action.microbatch - first != next[op])
            return std::nullopt; // Not in ascending order.
          ++next[op];
          word.push_back(op);
        }
      }
      if (!isValid(problem, rank.value, word))
        return std::nullopt;
    }
    return order;
  }

  bool readFrom(const Problem &problem) {
    for (const Order &order : asked.known) {
      bool fits = order.size() == problem.numRanks();
      for (uint32_t rank = 0; fits && rank != problem.numRanks(); ++rank)
        fits = isValid(problem, rank, order[rank]);
      if (fits)
        known.push_back({order, ""});
    }
    for (const std::string &name : asked.from) {
      Request request = asked.request;
      request.input = name;
      request.sharesParams = true;
      request.until = Request::Until::Expanded;
      Compiled compiled = compile(request, session);
      if (!compiled)
        return false;
      auto order = orderOf(compiled.program, problem);
      if (!order) {
        session.diags.report<diag::CannotBeginWith>({}, name);
        return false;
      }
      known.push_back({std::move(*order), name});
    }
    return true;
  }

  /// All schedules of the library that have this placement and fit.
  void readLibrary(const Problem &problem) {
    if (std::exchange(hasLibrary, true))
      return;
    for (const LibraryFile &file : scheduleLibrary()) {
      if (!file.text.contains("\nschedule "))
        continue;
      StringRef name = llvm::sys::path::stem(file.name);
      if (!tryLibrary(name, {}, problem) && problem.mostChunks > 1)
        // Perhaps a parameter is the number of chunks.
        tryLibrary(name, std::to_string(problem.mostChunks), problem);
    }
  }

  bool tryLibrary(StringRef name, const std::string &chunks,
                  const Problem &problem) {
    Session quiet(&session.sources.fileSystem());
    Request request;
    request.input = name.str();
    request.until = Request::Until::Checked;
    Compiled checked = compile(request, quiet);
    request.until = Request::Until::Expanded;
    request.limits = asked.request.limits;
    auto given = [&](StringRef param) {
      return llvm::find_if(asked.request.params,
                           [&](const auto &value) { return value.name == param; });
    };
    for (const ParameterText &param : checked.params)
      if (auto value = given(param.name); value != asked.request.params.end())
        request.params.push_back(*value);
      else if (param.type == "int" && !chunks.empty() &&
               llvm::none_of(request.params, [&](const auto &other) {
                 return other.value == chunks && given(other.name) == asked.request.params.end();
               }))
        request.params.push_back({param.name, chunks});
    Compiled compiled = compile(request, quiet);
    if (!compiled)
      return false;
    auto order = orderOf(compiled.program, problem);
    if (order)
      known.push_back({std::move(*order), name.str()});
    return order.has_value();
  }

  // ---- The search ----

  std::optional<Synthesized> find(const Problem &problem) {
    SearchOptions options;
    options.stop = asked.stop;
    options.budget = asked.budget.value_or(defaultBudget);
    if (asked.onBest)
      options.onBest = [&](Time best, uint64_t) {
        asked.onBest(best, problem.bound.time);
      };
    // Greedy orders are quick, and often enough.
    SearchOptions quick = options;
    quick.refines = false;
    quick.budget = std::min<uint64_t>(options.budget,
                                      uint64_t(problem.numActions) * 16);
    Found found = search(problem, orders(), quick);
    uint64_t evaluations = found.evaluations, actions = found.actions;
    if (found.order.empty() || found.value > problem.bound.time) {
      readLibrary(problem);
      if (!found.order.empty())
        known.push_back({found.order, ""});
      options.budget -= std::min(options.budget, actions);
      Found better = search(problem, orders(), options);
      evaluations += better.evaluations;
      actions += better.actions;
      if (!better.order.empty())
        found = std::move(better);
    }
    if (found.order.empty()) {
      refuse("nothing was found with so little effort");
      return std::nullopt;
    }
    auto result = compileFound(problem, found);
    if (result) {
      result->evaluations = evaluations;
      result->actions = actions;
    }
    return result;
  }

  std::vector<Order> orders() const {
    std::vector<Order> orders;
    for (const Candidate &candidate : known)
      orders.push_back(candidate.order);
    return orders;
  }

  /// An order of the actions with one of the messages, and what they take.
  struct Choice {
    const Order *order;
    std::optional<CommOrder> comm;
    Time value;
    Compiled compiled;
  };

  /// What the transport makes of a choice; nothing where it is not safe.
  std::optional<Time> valueOf(const Problem &problem, const Order &order,
                              std::optional<CommOrder> comm,
                              Compiled &compiled) const {
    Session quiet(&session.sources.fileSystem());
    compiled = compileText(write(program, problem, order, headOf(comm)), quiet);
    const TimedRun *timed =
        compiled ? Analyses(compiled.program)
                       .timedRun(compiled.comm.transports.front(), quiet.diags)
                 : nullptr;
    if (!timed)
      return std::nullopt;
    if (asked.objective == Objective::Makespan)
      return timed->simulation.makespan;
    Time span = 0;
    for (const RankTimes &times : rankTimes(
             compiled.program, timed->durations, timed->simulation))
      span = std::max(span, times.span());
    return span;
  }

  /// The best found order with the best order of its messages, unless that is
  /// given; where messages cost something, the next best orders, too.
  Choice choose(const Problem &problem, const Found &found) {
    const CommRequest &comm = asked.request.comm;
    Choice best{&found.order, std::nullopt, std::numeric_limits<Time>::max(),
                {}};
    auto offer = [&](const Order &order, std::optional<CommOrder> orderOfComm) {
      Compiled compiled;
      auto value = valueOf(problem, order, orderOfComm, compiled);
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
    readLibrary(problem);
    for (const Candidate &candidate : known)
      if (offer(candidate.order, with))
        break;
    return best;
  }

  std::optional<Synthesized> compileFound(const Problem &problem,
                                          const Found &found) {
    Choice choice = choose(problem, found);
    Synthesized result;
    result.order = *choice.order;
    for (const Candidate &candidate : known)
      if (candidate.order == result.order)
        result.origin = candidate.origin;
    WrittenHead head = headOf(choice.comm);
    result.compiled = std::move(choice.compiled);
    if (!result.compiled) // Safe in no way: says why.
      result.compiled =
          compileText(write(program, problem, result.order, head), session);
    if (!result.compiled || !tell(problem, result))
      return std::nullopt;
    head.comment = commentOf(result);
    result.text = write(program, problem, result.order, head);
    return result;
  }

  /// Fills in what the compiled program takes and holds.
  bool tell(const Problem &problem, Synthesized &result) {
    const Program &compiled = result.compiled.program;
    const TimedRun *timed = Analyses(compiled).timedRun(
        result.compiled.comm.transports.front(), session.diags);
    if (!timed)
      return false;
    Report report = reportOf(compiled, *timed);
    result.makespan = report.makespan;
    for (const RankReport &rank : report.ranks) {
      result.span = std::max(result.span, rank.times.span());
      result.peakMemory.push_back(rank.memory.memory);
    }
    result.value =
        asked.objective == Objective::Span ? result.span : result.makespan;
    result.bound = problem.bound;
    result.layout = llvm::join(compiled.stageLayers(), "|");
    return true;
  }

  // ---- Every number of microbatches ----

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
  static constexpr int64_t longestPeriod = 4;

  std::optional<Synthesized> findForAll() {
    auto given = llvm::find_if(asked.request.params, [&](const auto &value) {
      return value.name == asked.free;
    });
    int64_t told = 0;
    if (given != asked.request.params.end() &&
        StringRef(given->value).getAsInteger(10, told))
      told = 0;
    if (!at(std::max<int64_t>(told, 1)))
      return std::nullopt;
    if (program.pipes().size() > 1) {
      refuse("it has several pipes");
      return std::nullopt;
    }
    // From so many on, policies have mostly found their pace.
    constexpr int tries = 2;
    int64_t from = std::max<int64_t>({told, program.numRanks() * 6, 24});
    for (int i = 0; i != tries; ++i, from *= 2)
      for (bool provesAll : {false, true})
        if (auto way = wayFrom(from, provesAll))
          return tell(*way, told);
    refuse("no order was found that goes on in one way" +
           (whyNot.empty() ? "" : " and is proven: " + whyNot));
    return std::nullopt;
  }

  /// The placement with so many microbatches, made once.
  const Instance *at(int64_t microbatches) {
    auto [place, isNew] = instances.try_emplace(microbatches);
    if (isNew) {
      std::vector<sema::ParamValue> params = asked.request.params;
      llvm::erase_if(params, [&](const auto &value) {
        return value.name == asked.free;
      });
      params.push_back({asked.free, std::to_string(microbatches)});
      place->second = readInstance(params);
    }
    return place->second.get();
  }

  /// The best that is proven of what policies make of `from` microbatches and
  /// the next few. Proofs take longer than orders: of the best ones, or, where
  /// none of these is right, of all that are better than the right one so far.
  std::optional<Way> wayFrom(int64_t from, bool provesAll) {
    const Instance *first = at(from);
    if (!first)
      return std::nullopt;
    constexpr size_t mostProofs = 4, mostWrong = 50;
    std::vector<Way> ways;
    size_t right = 0, wrong = 0;
    SearchOptions options;
    options.stop = asked.stop;
    options.budget = asked.budget.value_or(defaultBudget);
    options.refines = false;
    options.accepts = [&](const Policy &policy) {
      actions += first->problem.numActions * 4;
      auto way = growthOf(policy, from);
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
    Found found = search(first->problem, {}, options);
    evaluations += found.evaluations;
    actions += found.actions;
    llvm::stable_sort(ways);
    ways.resize(std::min(ways.size(), mostProofs));
    for (Way &way : ways)
      if (provesAll || prove(way))
        return std::move(way);
    return std::nullopt;
  }

  /// How a policy goes on, with the shortest period that does.
  std::optional<Way> growthOf(const Policy &policy, int64_t from) {
    auto run = [&](int64_t microbatches, Order &order) -> std::optional<Time> {
      const Instance *instance = at(microbatches);
      if (!instance || !Decoder(instance->problem).run(policy, order))
        return std::nullopt;
      return Runner(instance->problem).run(order);
    };
    for (int64_t period = 1; period <= longestPeriod; ++period) {
      Way way;
      for (int64_t rest = 0; rest != period; ++rest) {
        int64_t m = from + (rest + period - from % period) % period;
        Order order, longer;
        auto value = run(m, order), other = run(m + period, longer);
        if (!value || !other)
          return std::nullopt;
        way.value += *value;
        way.growth += *other - *value;
        way.growths.push_back(
            {&at(m)->problem, m, std::move(order), std::move(longer)});
      }
      way.value /= period;
      if (auto family =
              writeFamily(program, way.growths, headOf(std::nullopt))) {
        way.least = family->least;
        return way;
      }
    }
    return std::nullopt;
  }

  /// Whether it is right from some number on, which then is its least. That
  /// ranks keep to their limits is seen to where it is written.
  bool prove(Way &way) {
    WrittenHead head = headOf(std::nullopt);
    head.hasLimits = false;
    while (true) {
      Session quiet(&session.sources.fileSystem());
      ProveRequest request;
      request.byData = asked.request.comm.order == CommOrder::None;
      request.compile = requestOf(
          writeFamily(program, way.growths, head, way.least)->text, quiet);
      llvm::erase_if(request.compile.costs.settings, isLimit);
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

  static bool isLimit(const std::string &setting) {
    return StringRef(setting).starts_with("limit") ||
           StringRef(setting).starts_with("memory.limit");
  }

  std::optional<Synthesized> tell(const Way &way, int64_t told) {
    Synthesized result;
    result.proof = way.proof;
    result.least = way.least;
    result.told =
        std::max(told ? told : way.growths.front().microbatches, way.least);
    const Instance *instance = at(result.told);
    WrittenHead head = headOf(std::nullopt);
    result.text = writeFamily(program, way.growths, head, way.least)->text;
    result.compiled = compileText(result.text, session,
                                  {{"M", std::to_string(result.told)}});
    if (!instance || !result.compiled || !tell(instance->problem, result))
      return std::nullopt;
    head.comment = commentOf(result);
    result.text = writeFamily(program, way.growths, head, way.least)->text;
    result.evaluations = evaluations;
    result.actions = actions;
    return result;
  }

  WrittenHead headOf(std::optional<CommOrder> comm) const {
    WrittenHead head;
    head.name = asked.name;
    head.comm = commSettings(comm);
    std::vector<StringRef> transports;
    for (const Transport &transport : asked.request.comm.transports)
      transports.push_back(transport.name);
    head.transports = llvm::join(transports, ", ");
    return head;
  }

  /// To compile a text that was found.
  Request requestOf(const std::string &text, Session &to) const {
    Request request = asked.request;
    request.input = "<found>.pp";
    to.sources.add(request.input, llvm::MemoryBuffer::getMemBufferCopy(
                                      text, request.input));
    request.params.clear();
    request.schedule.clear();
    request.layout.clear();
    request.model.clear(); // The text has what they say.
    request.cluster.clear();
    return request;
  }

  Compiled compileText(const std::string &text, Session &to,
                       std::vector<sema::ParamValue> params = {}) const {
    Request request = requestOf(text, to);
    request.params = std::move(params);
    return compile(request, to);
  }

  /// What was asked for on the command line, so that the schedule by itself
  /// takes what is told of it.
  std::vector<std::string>
  commSettings(std::optional<CommOrder> chosen) const {
    std::vector<std::string> settings;
    const CommRequest &comm = asked.request.comm;
    std::optional<CommOrder> order = comm.order ? comm.order : chosen;
    if (order && *order != CommOrder::None)
      for (const CommOrderInfo &info : commOrders())
        if (info.order == *order)
          settings.push_back("order " + info.name.str());
    if (comm.prefetch)
      settings.push_back(fmt::format("prefetch {}", *comm.prefetch));
    return settings;
  }

  std::vector<std::string> commentOf(const Synthesized &result) const {
    bool isSpan = asked.objective == Objective::Span;
    std::string figures = fmt::format(
        "{}{} {}, bound {}, gap {:.2f} %",
        result.proof ? fmt::format("At M = {}: ", result.told) : "", isSpan ? "Longest span" : "Makespan",
        cost::format(result.value), cost::format(result.bound.time),
        gapOf(result.value, result.bound) / 1e7);
    std::vector<std::string> lines{
        "Made by `ppcc synthesize`. " + figures +
            (result.isOptimal() ? ": no order does better."
                                : "."),
        "The bound: " + result.bound.why() + "."};
    if (result.proof)
      lines.push_back(fmt::format("Proven for every M from {} on, on {}.",
                                  result.least,
                                  llvm::join(result.proof->transports, ", ")));
    if (!result.origin.empty())
      lines.push_back("The order is that of " + result.origin + ".");
    return lines;
  }

  /// What takes about a second.
  static constexpr uint64_t defaultBudget = 100'000'000;

  SynthesisRequest asked;
  Session &session;
  Program program;
  std::vector<Candidate> known;
  bool hasLibrary = false; ///< Whether that of the library is known.
  std::map<int64_t, std::unique_ptr<Instance>> instances;
  uint64_t evaluations = 0, actions = 0;
  std::string whyNot; ///< A way is not proven.
};

} // namespace

std::optional<Synthesized> ppcc::synthesize(const SynthesisRequest &request,
                                            Session &session) {
  return Synthesis(request, session).run();
}
