// `ppcc synthesize`: the best order for a placement, as a schedule.
#include "ppcc/Synthesis/Synthesize.h"
#include "ProofText.h"
#include "ppcc/Basic/Diagnostics/Synthesis.h"
#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Editor/Editor.h"
#include "ppcc/Support/Printable.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/Support/VirtualFileSystem.h"

#include <csignal>

using namespace ppcc;

namespace {

struct SynthesizeOptions : Options {
  SynthesisRequest userRequest;
  std::pair<Objective, std::optional<Time Makespans::*>> goal;
  std::optional<uint64_t> effort;
  bool asJson = false;
  std::string certificate;
};

/// One unit of --effort, in simulated actions.
constexpr uint64_t effortUnit = 1'000'000;

void declare(OptionParser &parser, SynthesizeOptions &options) {
  parser.value("--placement", "PLACEMENT", options.request.input,
               "The placement: linear, v, loop:V or wave:V with V chunks a "
               "rank, or a schedule, of which only the placement is used");
  parser.choice("--objective",
                "What to minimize: the makespan; the longest time from a "
                "rank's first start to its last end; or, with `jitter`, the "
                "mean makespan, or what 95 % of the runs do not exceed",
                {{"makespan", {}},
                 {"span", {Objective::Span, {}}},
                 {"mean", {Objective::Makespan, &Makespans::mean}},
                 {"p95", {Objective::Makespan, &Makespans::high}}},
                options.goal);
  parser.number("--effort", options.effort, 1, 1'000'000'000,
                "Simulate at most this many million actions");
  parser.flag("--fused-backward", options.userRequest.fusedBackward,
              "Use B for both gradients instead of I and W");
  parser.value("--layers", "LAYERS", options.userRequest.layers,
               "Also choose the layers of each stage: E,t*24,L as in --layout, "
               "or `model` for those of the model");
  parser.flag("--recompute", options.userRequest.recompute,
              "Also choose where to recompute activations, as `recompute` of "
              "std.pp does");
  parser.flag("--offload", options.userRequest.offload,
              "Also choose where to offload activations to the host, as "
              "`offload` of std.pp does");
  parser.value("--for", "NAME", options.userRequest.free,
               "Search an order for all numbers of microbatches, this "
               "parameter; figures are for the value that -D gives");
  parser.repeated("--from", "SCHEDULE", options.userRequest.from,
                  "Also start from the order of this schedule");
  parser.choice("--format", "The format of the figures",
                {{"text", false}, {"json", true}}, options.asJson);
  addOutput(parser, options.output);
  parser.output("--certificate", options.certificate,
                "Also write a certificate of the makespan and the bound for "
                "ppcc-check-proof");
  addScheduleOptions(parser, options);
  addErrorOptions(parser, options.console);
}

/// What is wrong with the name of a placement; nothing for a file that may be
/// missing.
std::string wrongPlacement(StringRef text, llvm::vfs::FileSystem &files) {
  std::vector<StringRef> names;
  for (const editor::Word &word : editor::words)
    if (word.what == "placement")
      names.push_back(word.name);
  StringRef name = text.split(':').first;
  bool isKnown = llvm::is_contained(names, name) || files.exists(text) ||
                 findLibraryFile(name);
  if (isKnown || (text.contains('.') && nearestName(name, names).empty()))
    return "";
  return fmt::format("--placement: `{}` is neither linear, v, loop:V, wave:V "
                     "nor a schedule{}",
                     printable(text), didYouMean(name, ArrayRef(names)));
}

std::atomic<bool> isInterrupted = false;

/// Lets Ctrl-C end the search; a second one ends the process.
class SigintGuard {
public:
  SigintGuard() {
    struct sigaction action{};
    action.sa_handler = [](int) { isInterrupted = true; };
    action.sa_flags = SA_RESETHAND | SA_RESTART;
    sigaction(SIGINT, &action, &old);
  }
  ~SigintGuard() { sigaction(SIGINT, &old, nullptr); }
  SigintGuard(const SigintGuard &) = delete;
  SigintGuard &operator=(const SigintGuard &) = delete;

private:
  struct sigaction old{};
};

void putResult(const SynthesisResult &found, JsonFields &fields) {
  fields("format", "ppcc.synthesis");
  fields("version", 1);
  putUnits(fields, found.units);
  fields.raw("makespan", cost::format(found.makespan));
  fields.raw("span", cost::format(found.span));
  if (found.jitter) {
    fields.raw("jitter_mean", cost::format(found.jitter->mean));
    fields.raw("jitter_p95", cost::format(found.jitter->high));
    fields("jitter_runs", found.jitter->runs);
  }
  fields.raw("bound", cost::format(found.bound.time));
  fields.raw("gap", cost::format(gapOf(found.value, found.bound.time)));
  fields("optimal", found.isOptimal());
  fields("why", found.bound.why());
  fields.rawValues("peak_memory",
                   llvm::map_range(found.peakMemory, [](decimal::Sum memory) {
                     return amount::format(memory);
                   }));
  fields("transport",
         found.compiled.program.firstMessage()
             ? StringRef(found.compiled.comm.transports.front().name)
             : "none");
  if (!found.layout.empty())
    fields("layout", found.layout);
  if (!found.origin.empty())
    fields("origin", found.origin);
  if (found.proof) {
    fields("for", "M");
    fields("min_microbatches", found.minMicrobatches);
    fields("microbatches", found.reportedM);
    auto isShown = [](const ProvenRange &range) {
      return !range.to && range.verdict == Verdict::Valid;
    };
    fields.objects("formulas",
                   llvm::make_filter_range(found.proof->ranges, isShown),
                   [](JsonFields &of, const ProvenRange &range) {
                     of("modulus", range.modulus);
                     of("residue", range.residue);
                     of("from", range.from);
                     putFormula(of, "makespan", range.makespan);
                   });
  }
  fields("evaluations", found.evaluations);
  fields.raw("seconds", fmt::format("{:.6f}", found.seconds));
  fields("schedule", found.text);
}

void printText(const SynthesisResult &found, Objective objective,
               raw_ostream &err) {
  bool isSpan = objective == Objective::Span;
  if (!found.layout.empty())
    err << "layout " << found.layout << '\n';
  if (found.proof) {
    err << fmt::format("proven for every M >= {} on {}\n",
                       found.minMicrobatches,
                       llvm::join(found.proof->transports, ", "));
    for (const ProvenRange &range : found.proof->ranges)
      if (!range.to && range.makespan)
        err << fmt::format("makespan {} for M = {}\n",
                           formulaText(range.makespan, "M"),
                           numbersText(range.from, range.modulus, range.to));
    err << fmt::format("at M = {}: ", found.reportedM);
  }
  const Units &units = found.units;
  err << (isSpan ? "longest span " : "makespan ") << units.time(found.value);
  if (isSpan)
    err << " (makespan " << units.time(found.makespan) << ")";
  if (found.isOptimal())
    err << " (optimal). Lower bound: ";
  else
    err << fmt::format(", at most {:.2f} % above the optimum. Lower bound {}: ",
                       gapOf(found.value, found.bound.time) / 1e7,
                       units.time(found.bound.time));
  err << found.bound.why(units) << '\n';
  if (const auto &jitter = found.jitter)
    err << "with jitter " << units.time(jitter->mean) << " in the mean of "
        << jitter->runs << " runs, at most " << units.time(jitter->high)
        << " in 95 % of them\n";
  err << "peak memory " << units.memory(*llvm::max_element(found.peakMemory))
      << fmt::format("; simulated {} orders in {:.3f} s\n", found.evaluations,
                     found.seconds);
}

} // namespace

void ppcc::addSynthesize(OptionParser &parser, bool &synthesizes) {
  parser.flag(
      "--synthesize", synthesizes,
      "Also search the best order for the same placement, in the memory "
      "that it takes, as `ppcc synthesize` does");
}

SynthesizedOrder ppcc::synthesizeFor(const Request &request,
                                     const Program &program,
                                     const Report &report,
                                     const Session &session) {
  decimal::Sum memory = 0;
  for (const RankReport &rank : report.ranks)
    memory = std::max(memory, rank.memory.memory);
  std::string limit = "limit=" + amount::format(memory);
  SynthesisRequest userRequest;
  userRequest.request = request;
  userRequest.request.byFamily = nullptr;
  userRequest.request.costs.settings.push_back(limit);
  userRequest.fusedBackward = llvm::none_of(program.rows(), [&](ActionId row) {
    return program[row].kind == KindId(kind::BackwardInput);
  });
  Session quiet(session.sources);
  auto found = synthesize(userRequest, quiet);
  // One that lacks some of its actions is no measure of it.
  for (const Diagnostic &one : quiet.found)
    if (one.info().severity == Severity::Error ||
        one.id == diag::SynthesisLeavesOut)
      return {{}, 0, {}, one.message};
  if (!found)
    return {{}, 0, {}, "no order was found"};
  Time makespan = std::min(found->makespan, report.makespan);
  StringRef backward = userRequest.fusedBackward ? " --fused-backward" : "";
  return {makespan,
          gapOf(report.makespan, makespan),
          fmt::format("ppcc synthesize --placement={}{} --cost {}",
                      printable(request.input), backward, limit),
          {}};
}

int ppcc::runSynthesize(const Invocation &call) {
  SynthesizeOptions options;
  OptionParser parser(call, "ppcc synthesize");
  declare(parser, options);
  if (std::optional<int> code = parser.parse())
    return *code;
  if (options.request.input.empty())
    return parser.usageError(
        "no placement: --placement=linear is the usual one");
  if (StringRef(options.request.input).contains('.')) // `loop:2` is no file.
    takeInput(options.request, std::string(options.request.input));
  SynthesisRequest &userRequest = options.userRequest;
  const Request &given = options.request;
  for (auto [name, isGiven] :
       {std::pair("--recompute", userRequest.recompute),
        std::pair("--offload", userRequest.offload),
        std::pair("--certificate", !options.certificate.empty())})
    for (auto [other, excludes] :
         {std::pair("--for", !userRequest.free.empty()),
          std::pair("--with", !given.rules.empty()),
          std::pair("--certificate", !options.certificate.empty())})
      if (isGiven && excludes && StringRef(name) != other)
        return parser.usageError(
            fmt::format("{} and {} exclude each other", other, name));
  if (std::string error = wrongPlacement(given.input, *call.files);
      !error.empty())
    return parser.usageError(error);
  if (!userRequest.layers.empty() && !given.layout.empty())
    return parser.usageError("--layers and --layout exclude each other");
  if (!given.rules.empty() && given.ruleFile != "std.pp")
    return parser.usageError("--rules: the schedule that is found can follow "
                             "only the rules of std.pp");
  if (options.asJson && options.output != "-" &&
      isSameFile(options.output, "-", call.out))
    return parser.usageError("--output is where the JSON goes");
  const std::string &certificate = options.certificate;
  if (options.asJson && !certificate.empty() &&
      isSameFile(certificate, "-", call.out))
    return parser.usageError("--certificate is where the JSON goes");
  if (!certificate.empty() && options.goal.first == Objective::Span)
    return parser.usageError(
        "--certificate is about the makespan: leave out --objective=span");
  userRequest.certifies = !certificate.empty();
  if (options.goal.second && !userRequest.free.empty())
    return parser.usageError(
        "--for and --objective=mean or p95 exclude each other");
  userRequest.request = options.request;
  std::tie(userRequest.objective, userRequest.ofJitter) = options.goal;
  if (options.effort)
    userRequest.budget = *options.effort * effortUnit;
  raw_ostream &err = call.err;
  bool isShown = err.is_displayed();
  auto clearLine = [&] {
    if (isShown)
      err << "\r\x1b[K";
  };
  if (isShown)
    userRequest.onBest = [&](Time best, Time bound) {
      clearLine();
      err << "best " << cost::format(best) << ", bound " << cost::format(bound);
      err.flush();
    };
  auto session =
      consoleSession(call, options.console, [&](Diagnostic &) { clearLine(); });
  if (!prepareOutputs({options.output, options.asJson ? "-" : "", certificate},
                      call.out, *session))
    return Errors;
  SigintGuard interrupt;
  userRequest.stop = &isInterrupted;
  auto write = [&](function_ref<void(raw_ostream &)> fill) -> int {
    if (options.asJson && options.output == "-")
      return Success; // The JSON is there, and says all.
    return writeOutput(options.output, call.out, *session, fill);
  };
  auto found = synthesize(userRequest, *session);
  clearLine();
  if (!found)
    return Errors;
  // Files first: nobody may read the figures to their end.
  auto writeFiles = [&]() -> int {
    int code = write([&](raw_ostream &s) { s << found->text; });
    if (!userRequest.certifies)
      return code;
    if (found->certificate.empty())
      return Errors;
    return std::max<int>(
        code, writeOutput(certificate, call.out, *session,
                          [&](raw_ostream &s) { s << found->certificate; }));
  };
  int code = options.output == "-" ? int(Success) : writeFiles();
  if (options.asJson)
    putJson(call.out, [&](JsonFields &fields) { putResult(*found, fields); });
  else
    printText(*found, userRequest.objective, err);
  return options.output == "-" ? writeFiles() : code;
}
