// Reads placements, and compiles what was found.
#include "SynthesisContext.h"
#include "ppcc/Basic/Diagnostics/Instance.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"
#include "ppcc/Basic/Diagnostics/Synthesis.h"

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/Report/Report.h"

using namespace ppcc;
using namespace ppcc::synthesis;

Instance::Instance(Program given, const SynthesisRequest &userRequest,
                   Workload::Backward backward, const ActivationPlan *plan)
    : program(std::move(given)), durations(program),
      load(plan ? plan->kept()
                : SynthesisContext::workload(program, durations, backward)),
      problem(load, userRequest.objective, plan) {}

std::unique_ptr<Instance> SynthesisContext::instance(const Params &params) {
  return readPlacement(params) ? instance() : nullptr;
}

std::unique_ptr<Instance> SynthesisContext::instance() {
  if (!isInScope())
    return nullptr;
  Durations durations(program);
  if (!fits(workload(program, durations, backward())))
    return nullptr;
  auto instance = std::make_unique<Instance>(program, userRequest, backward(),
                                             plan ? &*plan : nullptr);
  return fitsMemory(instance->problem) ? std::move(instance) : nullptr;
}

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

bool SynthesisContext::readPlacement(const Params &params) {
  Request request = userRequest.request;
  request.params = params;
  request.until = Request::StopAfter::Expanded;
  if (auto placement = namedPlacement(request.input)) {
    // A program has the actions that stand in it.
    StringRef chunks =
        *placement == "v" ? "2" : StringRef(request.input).split(':').second;
    std::string with = userRequest.recompute ? "with recompute;\n  " : "", body;
    if (userRequest.offload)
      with += "with offload;\n  ";
    if (!with.empty())
      body = fmt::format("for c in 0 .. {} {{ repeat M {{ F(c); B(c); }} }}",
                         chunks.empty() ? "1" : chunks);
    request.input = "<placement>.pp";
    session.sources.add(
        request.input,
        llvm::MemoryBuffer::getMemBufferCopy(fmt::format(
            "{}schedule found(P: int, M: int) {{\n  ranks P;\n  microbatches "
            "M;\n  placement {};\n  {}on rank r {{ {} }}\n}}\n",
            body.empty() ? "" : "import \"std.pp\";\n", *placement, with,
            body)));
  }
  Compiled compiled = compile(request, session);
  if (!compiled.usageError.empty())
    session.diags.report<diag::CannotSynthesize>({}, compiled.usageError);
  if (!compiled || !applyCosts(request.costs, session, compiled.program))
    return false;
  program = std::move(compiled.program);
  // What is found has the actions that are chosen, and no others.
  auto isChosen = [&](KindId kind) {
    auto moved = offloadKinds(program);
    return (userRequest.recompute && kind == recomputeKind(program)) ||
           (userRequest.offload && moved &&
            (kind == moved->out || kind == moved->in));
  };
  std::set<StringRef> leftOut;
  for (ActionId row : program.rows())
    if (program.kindOf(row).isDeclared() && !isChosen(program.kind(row)))
      leftOut.insert(program.kindOf(row).mnemonic);
  if (!leftOut.empty() && request.rules.empty() &&
      !std::exchange(saysWhatIsLeftOut, true))
    session.diags.report<diag::SynthesisLeavesOut>(Location(program.name()),
                                                   fmt::join(leftOut, "`, `"));
  llvm::erase_if(program.editHead().costs.settings,
                 [&](const CostSetting &setting) {
                   return setting.isPerKind() &&
                          program.kinds()[setting.kind].isDeclared() &&
                          !isChosen(setting.kind);
                 });
  return true;
}

SearchResult SynthesisContext::search(const Problem &problem,
                                      ArrayRef<Order> initialOrders,
                                      SearchOptions options) {
  options.stop = userRequest.stop;
  SearchResult found = synthesis::search(problem, initialOrders, options);
  evaluations += found.evaluations;
  actions += found.actions;
  return found;
}

bool SynthesisContext::refuse(const std::string &what) {
  return session.diags.report<diag::CannotSynthesize>(Location(program.name()),
                                                      what);
}

bool SynthesisContext::isInScope() {
  if (!program.hasBackward())
    return refuse("it has no backward");
  for (const Pipe &pipe : program.pipes())
    if (pipe.slices != 1)
      return refuse("its microbatches are slices of sequences");
  if (microbatchesDiffer(program) ||
      (!userRequest.free.empty() && hasScales(program.costs())))
    return refuse("its microbatches differ");
  if (program.hasNodeCosts())
    return refuse("its nodes have costs");
  if (program.totalMicrobatches() == 0)
    return refuse("it has no microbatches");
  if (std::string what = schedtext::inexpressibleCost(program); !what.empty())
    return refuse("a schedule cannot express " + what);
  return true;
}

/// Whether ranks that have a limit hold as much after a microbatch as before
/// it: else none can be kept.
bool SynthesisContext::checkMemoryBalance(const Workload &load) {
  MemoryModel memory(program);
  for (const Workload::Stage &stage : load.stages) {
    if (load.memoryBudget[stage.rank.value] || !memory.limitOf(stage.rank))
      continue;
    decimal::Sum allocates = 0, frees = 0;
    bool hasEnough = stage.heldAfterF() >= 0 && stage.heldAfterI() >= 0;
    for (unsigned part = 0; part != Workload::numParts; ++part) {
      allocates += stage.allocates[part];
      frees += stage.frees[part];
    }
    if (!hasEnough || allocates != frees)
      return refuse(fmt::format(
          "stage {} {}, so the memory of rank {} grows without bound",
          stage.stage.value,
          hasEnough
              ? fmt::format("takes {} for a microbatch and frees {}",
                            amount::format(allocates), amount::format(frees))
              : "frees more than it takes",
          stage.rank.value));
  }
  return true;
}

/// Whether the sums of all times, and the number of actions, fit their types.
bool SynthesisContext::fits(const Workload &load) {
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
    session.diags.report<diag::SimulationTooLong>(Location(program.name()));
  if (!checkMemoryBalance(load))
    return false;
  uint64_t maxActions = userRequest.request.limits.maxActions;
  if (actions > maxActions)
    session.diags.report<diag::TooManyActions>(
        Location(program.name()), static_cast<uint64_t>(actions), maxActions);
  return time <= Durations::maxSum && actions <= maxActions;
}

bool SynthesisContext::fitsMemory(const Problem &problem) {
  MemoryModel memory(program);
  bool all = true;
  for (uint32_t rank = 0; rank != problem.numRanks(); ++rank) {
    if (problem.fitsMemory(rank))
      continue;
    all = false;
    std::vector<std::string> stages;
    Amount staged = 0;
    for (uint32_t s : problem.load.ofRank[rank]) {
      stages.push_back(std::to_string(problem.load.stages[s].stage.value));
      staged = std::max(staged, plan ? plan->staged(s) : 0);
    }
    session.diags.report<diag::LimitTooSmall>(
        Location(program.name()), rank,
        program.units().memory(*memory.limitOf(RankId(rank))),
        (stages.size() == 1 ? "stage " : "stages ") + llvm::join(stages, ", "),
        program.units().memory(memory.staticOf(RankId(rank)) +
                               problem.minMemory(rank) + staged));
  }
  return all;
}

/// What was asked for on the command line, so that the schedule by itself
/// takes what is reported of it.
static std::vector<std::string> commSettings(const CommRequest &comm,
                                             std::optional<CommOrder> chosen) {
  std::vector<std::string> settings;
  std::optional<CommOrder> order = comm.order ? comm.order : chosen;
  bool fusionPlaces = comm.fusion && comm.fusion->places;
  if (order && *order != CommOrder::None && !fusionPlaces)
    settings.push_back(
        "order " +
        findBy(commOrders(), *order, &CommOrderInfo::order)->name.str());
  if (comm.fusion)
    settings.push_back("fuse " + comm.fusion->name.str());
  if (comm.prefetch)
    settings.push_back(fmt::format("prefetch {}", *comm.prefetch));
  return settings;
}

/// ` for stage s, microbatch m when (s < 2 or s == 5) and m % 2 == 0`; empty
/// for all.
static std::string conditionOf(const BitVector &stages, uint32_t n,
                               uint32_t first) {
  std::string which;
  if (n != StageActivationPolicy::of) {
    uint32_t by = std::gcd(n, StageActivationPolicy::of),
             of = StageActivationPolicy::of / by;
    std::string m = first ? fmt::format("(m - {})", first) : "m";
    which = n == by ? fmt::format("{} % {} == 0", m, of)
                    : fmt::format("{} * {} % {} < {}", m, n / by, of, n / by);
  }
  std::vector<std::string> ranges;
  for (int begin = stages.find_first(), end; begin != -1;
       begin = stages.find_next(end - 1)) {
    end = stages.find_next_unset(begin);
    bool isLast = end == -1;
    if (isLast)
      end = stages.size();
    if (begin == 0 && isLast)
      return which.empty() ? "" : " for microbatch m when " + which;
    ranges.push_back(end == begin + 1 ? fmt::format("s == {}", begin)
                     : begin == 0     ? fmt::format("s < {}", end)
                     : isLast
                         ? fmt::format("s >= {}", begin)
                         : fmt::format("(s >= {} and s < {})", begin, end));
  }
  std::string all = llvm::join(ranges, " or ");
  if (which.empty())
    return " for stage s when " + all;
  return fmt::format(" for stage s, microbatch m when {}{}{} and {}",
                     ranges.size() > 1 ? "(" : "", all,
                     ranges.size() > 1 ? ")" : "", which);
}

/// What the declaration of an action says that it takes, in forwards: it holds
/// where another model stands in the place of the written one.
static std::string declaredCosts(const Program &program, KindId kind) {
  std::string text;
  for (Cost what : {Cost::Action, Cost::Memory})
    for (const CostSetting &setting : program.costs().of(what))
      if (setting.kind == kind && setting.forwardMultiple) {
        const CostRow &row = rowOf(what);
        text += fmt::format(" {} {};", row.item,
                            row.number.format(*setting.forwardMultiple));
        break;
      }
  return text;
}

/// The actions of all savings, and where those that were chosen stand.
static void writeSavings(const Program &program, const ActivationPlan &plan,
                         ScheduleHeader &head) {
  using ActivationPolicy = Workload::ActivationPolicy;
  auto name = [&](KindId kind) {
    return StringRef(program.kinds()[kind].mnemonic);
  };
  auto lane = [&](KindId kind) {
    return program.kinds().lanes()[program.kinds()[kind].lane];
  };
  for (ActivationPolicy policy : plan.policies()) {
    auto moved = offloadKinds(program);
    if (policy == ActivationPolicy::Recompute) {
      head.actions.push_back(
          fmt::format("action {} {{ after F; before B, I; restores F;{} }}",
                      name(*recomputeKind(program)),
                      declaredCosts(program, *recomputeKind(program))));
    } else {
      head.actions.push_back(fmt::format(
          "action {} {{ lane {}; after F; before {}; in_flight {};{} }}",
          name(moved->out), lane(moved->out), name(moved->in),
          plan.copies.inFlight, declaredCosts(program, moved->out)));
      head.actions.push_back(
          fmt::format("action {} {{ lane {}; after {}; before B, I;{} }}",
                      name(moved->in), lane(moved->in), name(moved->out),
                      declaredCosts(program, moved->in)));
    }
    for (uint32_t n = 1; n <= StageActivationPolicy::of; ++n) {
      BitVector stages(plan.ofStage.size());
      for (auto [s, one] : llvm::enumerate(plan.ofStage))
        if (one == StageActivationPolicy{policy, n})
          stages.set(s);
      if (stages.none())
        continue;
      std::string where =
          conditionOf(stages, n, program.pipes().front().firstMicrobatch);
      if (policy == ActivationPolicy::Recompute) {
        head.inserts.push_back(fmt::format(
            "insert {} before B, I{};", name(*recomputeKind(program)), where));
        continue;
      }
      head.inserts.push_back(
          fmt::format("insert {} after F{};", name(moved->out), where));
      head.inserts.push_back(fmt::format("insert {} before B, I by {}{};",
                                         name(moved->in),
                                         plan.copies.prefetchDistance, where));
    }
  }
}

ScheduleHeader SynthesisContext::headOf(std::optional<CommOrder> comm) const {
  ScheduleHeader head;
  head.name = userRequest.name;
  head.comm = commSettings(userRequest.request.comm, comm);
  std::vector<StringRef> transports;
  for (const Transport &transport : userRequest.request.comm.transports)
    transports.push_back(transport.name);
  head.transports = llvm::join(transports, ", ");
  if (plan && plan->hasAny())
    writeSavings(program, *plan, head);
  ArrayRef<std::string> rules = userRequest.request.rules;
  if (!rules.empty())
    head.actions.push_back("import \"std.pp\";");
  for (const std::string &rule : rules)
    head.inserts.push_back("with " + rule + ";");
  return head;
}

Request SynthesisContext::requestOf(const std::string &text,
                                    Session &to) const {
  Request request = userRequest.request;
  request.input = "<found>.pp";
  to.sources.add(request.input,
                 llvm::MemoryBuffer::getMemBufferCopy(text, request.input));
  request.params.clear();
  request.schedule.clear();
  request.layout.clear();
  request.model.clear(); // The text has what they say.
  request.cluster.clear();
  request.byFamily = nullptr; // A proof takes longer than a look at one order.
  request.costs = {};
  request.rules.clear();
  std::optional<CommOrder> order = request.comm.order;
  request.comm = {};
  if (order == CommOrder::None) // Figures are by data; the text allows both.
    request.comm.order = order;
  return request;
}

Compiled SynthesisContext::compileText(const std::string &text, Session &to,
                                       Params params) const {
  Request request = requestOf(text, to);
  request.params = std::move(params);
  return compile(request, to);
}

std::string SynthesisContext::commentOf(const SynthesisResult &result) const {
  bool isSpan = userRequest.objective == Objective::Span;
  const Units &units = program.units();
  std::string figures = fmt::format(
      "{}{}{} {}, bound {}, gap {:.2f} %",
      result.compiled.program.firstMessage() ? "" : "Without messages: ",
      result.proof ? fmt::format("At M = {}: ", result.reportedM) : "",
      isSpan ? "Longest span" : "Makespan", units.time(result.value),
      units.time(result.bound.time),
      gapOf(result.value, result.bound.time) / 1e7);
  std::vector<std::string> lines{"Made by `ppcc synthesize`. " + figures +
                                     (result.isOptimal() ? " (optimal)." : "."),
                                 "The bound: " + result.bound.why(units) + "."};
  if (result.proof)
    lines.push_back(fmt::format("Proven for every M >= {} on {}.",
                                result.minMicrobatches,
                                llvm::join(result.proof->transports, ", ")));
  if (!result.origin.empty())
    lines.push_back("The order is that of " + result.origin + ".");
  std::string comment;
  for (const std::string &line : lines)
    comment += "// " + line + '\n';
  return comment;
}

SynthesisContext::Evaluation
SynthesisContext::evaluate(const Problem &problem, const Order &order,
                           std::optional<CommOrder> comm) {
  actions += costOfEvaluation(problem);
  Session quiet(&session.sources.fileSystem());
  Request request = requestOf(write(program, problem, headOf(comm)), quiet);
  Rows rows = rowsOf(program, problem, order);
  request.rows = &rows;
  Evaluation evaluation{compile(request, quiet), std::nullopt};
  if (!evaluation.compiled)
    return evaluation;
  const Program &compiled = evaluation.compiled.program;
  const TimedRun *timed = Analyses(compiled).timedRun(
      evaluation.compiled.comm.transports.front(), quiet.diags);
  if (!timed)
    return evaluation;
  Time span = 0;
  for (const RankTimes &times :
       rankTimes(compiled, timed->durations, timed->simulation))
    span = std::max(span, times.span());
  evaluation.value = userRequest.objective == Objective::Span
                         ? span
                         : timed->simulation.makespan;
  if (userRequest.ofJitter)
    if (auto value = valueUnderJitter(evaluation.compiled))
      evaluation.value = value;
  return evaluation;
}

std::optional<Time>
SynthesisContext::valueUnderJitter(const Compiled &compiled) {
  constexpr unsigned maxRounds = 2, costOfAction = 8;
  // What a report says of its own runs is not what was chosen by.
  constexpr uint64_t afterThoseOfReports = 1 << 20;
  uint64_t before = actions, run = afterThoseOfReports;
  decimal::Sum sum = 0;
  unsigned rounds = 0;
  do {
    auto times =
        makespansOf(compiled.program, compiled.comm.transports.front(), run);
    if (!times)
      return std::nullopt;
    run += times->runs;
    sum += *times.*(*userRequest.ofJitter);
    actions += uint64_t(times->runs) * compiled.program.size() * costOfAction;
  } while (++rounds != maxRounds && actions - before < budget() / 64);
  return Time(sum / rounds);
}

bool SynthesisContext::measure(const ResourceBound &ofOrders,
                               SynthesisResult &result) {
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
      userRequest.objective == Objective::Span ? result.span : result.makespan;
  result.bound = bound.value_or(ofOrders);
  result.jitter =
      makespansOf(compiled, result.compiled.comm.transports.front());
  result.units = program.units();
  result.layout = llvm::join(compiled.stageLayers(), "|");
  return true;
}
