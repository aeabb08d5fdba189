// `ppcc synthesize`: the best order for a placement, as a schedule.
#include "ProofText.h"
#include "ppcc/Emit/Chart.h"
#include "ppcc/Support/Printable.h"
#include "ppcc/Synthesis/Sweep.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

#include <csignal>

using namespace ppcc;

namespace {

struct SynthesizeOptions : Options {
  SynthesisRequest userRequest;
  std::optional<uint64_t> effort;
  bool asJson = false;
  std::vector<Amount> limits; ///< Of a sweep.
};

/// Takes `limit=A..B`, whole numbers between these where there are few, or
/// sixteen steps. Empty, or what is wrong.
std::string parseSweep(StringRef text, std::vector<Amount> &limits) {
  auto [first, last] = text.split("..");
  bool isLimit = first.consume_front("limit=");
  auto low = decimal::parse(first, amount::scale),
       high = decimal::parse(last, amount::scale);
  if (!isLimit || !low || !high || *low >= *high)
    return "`" + text.str() + "` is not of the form limit=A..B, with A below B";
  constexpr Amount most = 64, steps = 16;
  bool byUnit = *low % amount::unit == 0 && *high % amount::unit == 0 &&
                (*high - *low) / amount::unit <= most;
  if (byUnit)
    for (Amount limit = *low; limit <= *high; limit += amount::unit)
      limits.push_back(limit);
  else
    for (Amount step = 0; step <= steps; ++step)
      limits.push_back(*low + static_cast<Amount>(decimal::Sum(*high - *low) *
                                                  step / steps));
  return "";
}

/// One unit of --effort, in simulated actions.
constexpr uint64_t effortUnit = 1'000'000;

void declare(OptionParser &parser, SynthesizeOptions &options) {
  parser.value("--placement", "PLACEMENT", options.request.input,
               "The placement: linear, v, loop:V or wave:V with V chunks a "
               "rank, or a schedule, of which only the placement is used");
  parser.choice("--objective",
                "What to minimize: the makespan, or the longest time from a "
                "rank's first start to its last end",
                {{"makespan", Objective::Makespan}, {"span", Objective::Span}},
                options.userRequest.objective);
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
  parser.parsed(
      "--sweep",
      "Search the best order for each memory limit of a range, such as "
      "limit=4..16, and print a table; -o FILE.svg or FILE.html draws it",
      [&](const std::string &text) { return parseSweep(text, options.limits); },
      "limit=A..B");
  addDiagnosticsFormat(parser, options.console);
  addOutput(parser, options.output);
  addScheduleOptions(parser, options);
  addMaxErrors(parser, options.console.maxErrors);
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

void raw(llvm::json::OStream &json, StringRef key, StringRef value) {
  json.attributeBegin(key);
  json.rawValue(value);
  json.attributeEnd();
}

void printJson(const SynthesisResult &found, raw_ostream &out) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream, 1);
  json.object([&] {
    raw(json, "makespan", cost::format(found.makespan));
    raw(json, "span", cost::format(found.span));
    raw(json, "bound", cost::format(found.bound.time));
    raw(json, "gap", cost::format(gapOf(found.value, found.bound)));
    json.attribute("optimal", found.isOptimal());
    json.attribute("why", found.bound.why());
    json.attributeArray("peak_memory", [&] {
      for (decimal::Sum memory : found.peakMemory)
        json.rawValue(amount::format(memory));
    });
    json.attribute("transport",
                   found.compiled.program.firstMessage()
                       ? StringRef(found.compiled.comm.transports.front().name)
                       : "none");
    if (!found.layout.empty())
      json.attribute("layout", found.layout);
    if (!found.origin.empty())
      json.attribute("origin", found.origin);
    if (found.proof) {
      json.attribute("for", "M");
      json.attribute("min_microbatches", found.minMicrobatches);
      json.attribute("microbatches", found.reportedM);
      json.attributeArray("formulas", [&] {
        for (const ProvenRange &range : found.proof->ranges)
          if (!range.to && range.verdict == Verdict::Valid)
            json.object([&] {
              json.attribute("modulus", range.modulus);
              json.attribute("residue", range.residue);
              json.attribute("from", range.from);
              writeFormula(json, "makespan", range.makespan);
            });
      });
    }
    json.attribute("evaluations", found.evaluations);
    raw(json, "seconds", fmt::format("{:.6f}", found.seconds));
    json.attribute("schedule", found.text);
  });
  out << printableJson(text) << '\n';
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
  err << (isSpan ? "longest span " : "makespan ") << cost::format(found.value);
  if (isSpan)
    err << " (makespan " << cost::format(found.makespan) << ")";
  if (found.isOptimal())
    err << " (optimal). Lower bound: ";
  else
    err << fmt::format(", at most {:.2f} % above the optimum. Lower bound {}: ",
                       gapOf(found.value, found.bound) / 1e7,
                       cost::format(found.bound.time));
  err << found.bound.why() << '\n'
      << "peak memory " << amount::format(*llvm::max_element(found.peakMemory))
      << fmt::format("; simulated {} orders in {:.3f} s\n", found.evaluations,
                     found.seconds);
}

/// A curve of the times and their bounds over the limits.
void drawSweep(ArrayRef<SweepPoint> points, raw_ostream &out) {
  std::vector<ChartPoint> shown;
  for (const SweepPoint &point : points)
    if (point.fits)
      shown.push_back({point.limit, point.value, point.bound,
                       point.isKnee ? fmt::format("knee: {} at {}",
                                                  cost::format(point.value),
                                                  amount::format(point.limit))
                                    : std::string()});
  emitChart(shown, "Memory and time",
            "limit of memory; time found, and its bound (dashed)", out);
}

/// As a picture or a table, by the name of the file.
void printSweep(ArrayRef<SweepPoint> points, StringRef file, raw_ostream &out) {
  StringRef extension = llvm::sys::path::extension(file);
  if (extension == ".svg") {
    drawSweep(points, out);
  } else if (extension == ".html") {
    out << "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<meta "
           "name=\"color-scheme\" content=\"light dark\">\n<title>Memory and "
           "time</title>\n";
    drawSweep(points, out);
    out << "<pre>\n";
    tableOf(points).print(out);
    out << "</pre>\n";
  } else {
    tableOf(points).print(out);
  }
}

void printSweepJson(ArrayRef<SweepPoint> points, raw_ostream &out) {
  llvm::json::OStream json(out, 1);
  json.object([&] {
    json.attributeArray("sweep", [&] {
      for (const SweepPoint &point : points)
        json.object([&] {
          raw(json, "limit", amount::format(point.limit));
          json.attribute("fits", point.fits);
          if (!point.fits)
            return;
          raw(json, "makespan", cost::format(point.value));
          raw(json, "bound", cost::format(point.bound));
          raw(json, "gap", cost::format(point.gap));
          json.attribute("optimal", point.isOptimal());
          raw(json, "peak_memory", amount::format(point.peakMemory));
          json.attribute("knee", point.isKnee);
        });
    });
  });
  json.flush();
  out << '\n';
}

} // namespace

int ppcc::runSynthesize(const Invocation &call) {
  SynthesizeOptions options;
  OptionParser parser(call, "ppcc synthesize");
  declare(parser, options);
  if (std::optional<int> code = parser.parse())
    return *code;
  if (options.request.input.empty())
    return parser.usageError(
        "no placement: --placement=linear is the usual one");
  SynthesisRequest &userRequest = options.userRequest;
  for (auto [name, isGiven] : {std::pair("--recompute", userRequest.recompute),
                               std::pair("--offload", userRequest.offload),
                               std::pair("--sweep", !options.limits.empty())})
    if (!userRequest.free.empty() && isGiven)
      return parser.usageError(
          fmt::format("--for and {} exclude each other", name));
  if (options.asJson && options.output != "-" &&
      isSameFile(options.output, "-", call.out))
    return parser.usageError("--output is where the JSON goes");
  if (!options.limits.empty() && StringRef(options.output).ends_with(".pdf"))
    return parser.usageError("--sweep draws .svg and .html; rsvg-convert -f "
                             "pdf makes a pdf of an svg");
  userRequest.request = options.request;
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
  SigintGuard interrupt;
  userRequest.stop = &isInterrupted;
  auto write = [&](function_ref<void(raw_ostream &)> fill) -> int {
    if (options.asJson && options.output == "-")
      return Success; // The JSON is there, and says all.
    return writeOutput(options.output, call.out, *session, fill);
  };
  if (!options.limits.empty()) {
    auto points =
        sweepLimits(userRequest, options.limits, *session, [&](Amount limit) {
          clearLine();
          if (isShown)
            err << "limit " << amount::format(limit) << ' ';
        });
    clearLine();
    if (!points)
      return Errors;
    if (options.asJson)
      printSweepJson(*points, call.out);
    return write(
        [&](raw_ostream &s) { printSweep(*points, options.output, s); });
  }
  auto found = synthesize(userRequest, *session);
  clearLine();
  if (!found)
    return Errors;
  if (options.asJson)
    printJson(*found, call.out);
  else
    printText(*found, userRequest.objective, err);
  return write([&](raw_ostream &s) { s << found->text; });
}
