// `ppcc compare`: a table of the figures of several schedules.
#include "Options.h"
#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/Report/Report.h"
#include "ppcc/Basic/Diagnostics/Pictures.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Emit/Writer.h"
#include "ppcc/Support/Printable.h"
#include "ppcc/Support/Progress.h"
#include "ppcc/Support/TextTable.h"

using namespace ppcc;

namespace {

/// A parameter, and the values that it takes one after another.
struct Sweep {
  std::string name;
  std::vector<std::string> values;
};

struct CompareOptions : Options {
  std::vector<std::string> inputs;
  std::vector<Sweep> sweeps;
  std::string format = "text";
  bool synthesizes = false;

  bool isPage() const { return format == "html"; }
};

/// What is reported of one run.
struct Row {
  std::string input, schedule;
  std::vector<ProgramParam> params;
  Time makespan;
  std::vector<std::string> metrics, shown; ///< For programs, and for people.
  Units units;
  std::optional<bool> fits; ///< The limits of all ranks, if there are any.
  std::optional<Makespans> jitter;
  size_t microbatches; ///< Of all pipes; slices together are one.
  size_t combination;  ///< Of swept values.
  std::optional<SynthesizedOrder> synthesized = {};
};
constexpr const char *metricNames[] = {
    "transport",   "makespan", "bound",    "bubble rate", "global bubble rate",
    "activations", "memory",   "messages", "work"};
constexpr const char *jitterNames[] = {"jitter mean", "jitter p95"},
                     *synthesisNames[] = {"synthesized", "above it"};

std::string percent(int64_t rate) {
  return fmt::format("{:.1f} %", double(rate) / 1e7);
}

void declare(OptionParser &parser, CompareOptions &options) {
  parser.positional("INPUT", options.inputs,
                    "The schedules or programs: files, or names of the "
                    "library");
  parser.repeated("--sweep", "NAME=VALUE,...",
                  "Compare several values of a parameter: M=8,16,32; several "
                  "sweeps give all combinations",
                  [&](const std::string &text) {
                    sema::ParamValue given;
                    std::string wrong = parseDefinition(text, given);
                    Sweep &sweep = options.sweeps.emplace_back();
                    sweep.name = given.name;
                    for (StringRef value : llvm::split(given.value, ','))
                      sweep.values.push_back(value.str());
                    return wrong;
                  });
  parser.choice(
      "--format",
      "The format of the table, text or that of the output's extension; "
      "html draws the runs instead",
      {"text", "csv", "markdown", "json", "html"}, options.format);
  options.request.costs.perRank = true;
  parser.choice("--work",
                "What costs are of: a rank, whose stages and slices of a "
                "microbatch share them, so that all schedules do the same "
                "work (the default), or each stage",
                {{"rank", true}, {"stage", false}},
                options.request.costs.perRank);
  addSynthesize(parser, options.synthesizes);
  addOutput(parser, options.output);
  parser.formatByExtension(options.output);
  addCompileOptions(parser, options);
  addErrorOptions(parser, options.console);
}

struct Comparison {
  const CompareOptions &options;
  raw_ostream &err;
  Progress &progress;

  /// Compiles everything; what went wrong is reported for each.
  ExitCode run(Session &compiler) {
    session = &compiler;
    ExitCode code = Success;
    for (const std::string &input : options.inputs)
      for (size_t number = 0; number != combinations(options.sweeps); ++number)
        code = std::max(code, compileOne(input, number));
    nameApart();
    return std::max(code, checkNames());
  }

  /// Calls schedules of the same name in several inputs by these.
  void nameApart() {
    std::map<std::string, std::set<std::string>> inputsOf;
    for (const Row &row : rows)
      inputsOf[row.schedule].insert(row.input);
    for (Row &row : rows)
      if (inputsOf[row.schedule].size() > 1)
        row.schedule = row.input;
  }

  static size_t combinations(ArrayRef<Sweep> sweeps) {
    constexpr size_t maxCombinations = 1'000'000'000'000;
    size_t count = 1;
    for (const Sweep &sweep : sweeps)
      count = std::min(count * sweep.values.size(), maxCombinations);
    return count;
  }

  std::vector<Row> rows{};
  std::deque<Program> programs{}; ///< Those of a page.
  std::vector<PageRun> runs{};
  std::string running{}; ///< What is compiled now.

  /// The values of a combination; the last sweep changes fastest.
  std::vector<sema::ParamValue> valuesOf(size_t number) const {
    std::vector<sema::ParamValue> values;
    for (const Sweep &sweep : llvm::reverse(options.sweeps)) {
      values.push_back(
          {sweep.name, sweep.values[number % sweep.values.size()]});
      number /= sweep.values.size();
    }
    std::reverse(values.begin(), values.end());
    return values;
  }

  /// The input with those values that it has parameters for; all of them as
  /// long as that is not known.
  std::string nameOf(const std::string &input, size_t number) const {
    auto known = names.find(input);
    std::string name = input;
    for (const sema::ParamValue &value : valuesOf(number))
      if (known == names.end() || known->second.count(value.name))
        name += " " + value.name + "=" + value.value;
    return name;
  }

  ExitCode compileOne(const std::string &input, size_t number) {
    running = nameOf(input, number);
    progress.next(running);
    // Sweeps over parameters of other schedules do not change it.
    if (names.count(input) && !seen.insert(running).second)
      return Success;
    Request request = options.request;
    takeInput(request, input);
    request.ignoresUnknownParams = true;
    request.checksMemory = false;
    for (sema::ParamValue &value : valuesOf(number))
      request.params.push_back(std::move(value));
    Compiled compiled = compile(request, *session);
    if (!compiled)
      return exitCodeOf(compiled, err);
    names.try_emplace(input, parameterNames(compiled, request, *session));
    seen.insert(nameOf(input, number));
    const Transport &transport = compiled.comm.transports.front();
    bool good = options.isPage() ? keep(std::move(compiled.program), transport)
                                 : measure(request, input, number,
                                           compiled.program, transport);
    return good ? Success : Errors;
  }

  bool measure(const Request &request, const std::string &input, size_t number,
               const Program &program, const Transport &transport) {
    const TimedRun *timed =
        Analyses(program).timedRun(transport, session->diags);
    if (!timed)
      return false;
    Report report = reportOf(program, *timed);
    int64_t activations = 0;
    decimal::Sum memory = 0, busy = 0;
    std::optional<bool> fits;
    for (const RankReport &rank : report.ranks) {
      activations = std::max(activations, rank.memory.activations);
      memory = std::max(memory, rank.memory.memory);
      busy += rank.times.busy;
      if (rank.memoryLimit)
        fits = fits.value_or(true) && rank.memory.memory <= *rank.memoryLimit;
    }
    size_t microbatches = 0;
    for (const Pipe &pipe : program.pipes())
      microbatches += pipe.numMicrobatches / pipe.slices;
    busy /= std::max<size_t>(microbatches * program.numRanks(), 1);
    auto figures = [&](auto time, auto amountOf, auto rate) {
      return std::vector<std::string>{timed->transport,
                                      time(report.makespan),
                                      time(report.bound),
                                      rate(report.bubbleRate),
                                      rate(report.globalBubbleRate),
                                      std::to_string(activations),
                                      amountOf(memory),
                                      std::to_string(report.messages),
                                      time(static_cast<Time>(busy))};
    };
    const Units &units = program.units();
    rows.push_back(
        {input, program.params().empty() ? input : program.name(),
         program.params(), report.makespan,
         figures(cost::format, amount::format,
                 [](Rate rate) { return cost::format(rate.value); }),
         figures([&](Time time) { return units.time(time); },
                 [&](decimal::Sum amount) { return units.memory(amount); },
                 [](Rate rate) { return percent(rate.value); }),
         units, fits, makespansOf(program, transport), microbatches, number});
    if (options.synthesizes)
      rows.back().synthesized =
          synthesizeFor(request, program, report, *session);
    return true;
  }

  /// Keeps a program for the page; all of them must fit it.
  bool keep(Program program, const Transport &transport) {
    pageRows += program.size();
    if (pageRows > maxPageRows)
      return session->diags.report<diag::PictureTooLarge>(
          Location(program.name()), pageRows, "actions and messages",
          maxPageRows, "a page");
    programs.push_back(std::move(program));
    runs.push_back({programs.back(), transport,
                    options.request.costs.perRank ? ", equal work per rank"
                                                  : ", equal work per stage"});
    return true;
  }

  /// Each parameter that was given a value belongs to some schedule. Nothing is
  /// said when a schedule did not compile: it may be its own.
  ExitCode checkNames() {
    running.clear();
    if (names.size() !=
        std::set<std::string>(options.inputs.begin(), options.inputs.end())
            .size())
      return Success;
    std::set<std::string> all;
    for (const auto &[input, params] : names)
      all.insert(params.begin(), params.end());
    ExitCode code = Success;
    auto check = [&](const std::string &name) {
      code = std::max(code, checkParameter(name, all, *session));
    };
    for (const sema::ParamValue &param : options.request.params)
      check(param.name);
    for (const Sweep &sweep : options.sweeps)
      check(sweep.name);
    return code;
  }

  Session *session = nullptr;
  size_t pageRows = 0;
  std::map<std::string, std::set<std::string>> names{}; ///< By input.
  std::set<std::string> seen{};
};

/// The parameter of a row that `-D` or `--sweep` calls so.
const ProgramParam *paramOf(const Row &row, StringRef name) {
  auto *found = findBy(row.params, name, &ProgramParam::name);
  return found
             ? found
             : findBy(row.params, name.split('.').second, &ProgramParam::name);
}

/// The parameters that tell rows apart or that were given, in order.
std::vector<std::string> shownParams(const CompareOptions &options,
                                     ArrayRef<Row> rows) {
  std::vector<std::string> shown;
  auto show = [&](const std::string &name) {
    if (!llvm::is_contained(shown, name))
      shown.push_back(name);
  };
  auto showGiven = [&](const std::string &name) {
    for (const Row &row : rows)
      if (const ProgramParam *param = paramOf(row, name))
        show(param->name);
  };
  for (const sema::ParamValue &param : options.request.params)
    showGiven(param.name);
  for (const Sweep &sweep : options.sweeps)
    showGiven(sweep.name);
  std::map<std::string, std::string> first;
  for (const Row &row : rows)
    for (const ProgramParam &param : row.params)
      if (first.try_emplace(param.name, param.value).first->second !=
          param.value)
        show(param.name);
  return shown;
}

TextTable tableOf(const CompareOptions &options, ArrayRef<Row> rows,
                  std::vector<std::string> Row::*figures) {
  std::vector<std::string> params = shownParams(options, rows);
  std::vector<std::string> columns = {"schedule"};
  llvm::append_range(columns, params);
  llvm::append_range(columns, metricNames);
  bool hasLimits =
      llvm::any_of(rows, [](const Row &row) { return row.fits.has_value(); });
  bool hasJitter =
      llvm::any_of(rows, [](const Row &row) { return row.jitter.has_value(); });
  if (hasJitter)
    llvm::append_range(columns, jitterNames);
  if (options.synthesizes)
    llvm::append_range(columns, synthesisNames);
  if (hasLimits)
    columns.push_back("fits");
  TextTable table(std::move(columns));
  for (const Row &row : rows) {
    std::vector<std::string> cells = {row.schedule};
    for (const std::string &name : params) {
      auto *param = findBy(row.params, name, &ProgramParam::name);
      cells.push_back(param ? param->value : "");
    }
    llvm::append_range(cells, row.*figures);
    if (hasJitter)
      for (auto time : {&Makespans::mean, &Makespans::high})
        cells.push_back(!row.jitter ? ""
                        : figures == &Row::metrics
                            ? cost::format(*row.jitter.*time)
                            : row.units.time(*row.jitter.*time));
    if (const auto &order = row.synthesized; order && order->makespan) {
      bool isShown = figures == &Row::shown;
      cells.push_back(isShown ? row.units.time(*order->makespan)
                              : cost::format(*order->makespan));
      cells.push_back(isShown ? percent(order->gap) : cost::format(order->gap));
    } else if (order) {
      cells.insert(cells.end(), {"none", ""});
    }
    if (hasLimits)
      cells.push_back(!row.fits ? "" : *row.fits ? "yes" : "no");
    table.add(std::move(cells));
  }
  return table;
}

/// Says what makes the figures of two rows of one combination incomparable.
void printDifference(ArrayRef<Row> rows, raw_ostream &out) {
  std::map<size_t, const Row *> first;
  for (const Row &row : rows) {
    const Row &other = *first.try_emplace(row.combination, &row).first->second;
    if (row.microbatches != other.microbatches)
      out << fmt::format("makespans are of different work: {} has {} "
                         "microbatches, {} has {}\n",
                         printable(other.schedule), other.microbatches,
                         printable(row.schedule), row.microbatches);
    else if (row.units.words() != other.units.words())
      out << fmt::format("{} and {} have costs of different units\n",
                         printable(other.schedule), printable(row.schedule));
    else
      continue;
    return;
  }
}

/// Figures are numbers, but for the transport.
void printJson(ArrayRef<Row> rows, bool isPerRank, raw_ostream &out) {
  auto put = [](JsonFields &fields, const Row &row) {
    fields("schedule", row.schedule);
    fields.object("params", [&](JsonFields &of) { putParams(of, row.params); });
    for (auto [name, figure] : llvm::zip(metricNames, row.metrics)) {
      std::string key = name;
      std::replace(key.begin(), key.end(), ' ', '_');
      figure == row.metrics.front() ? fields(key, figure)
                                    : fields.raw(key, figure);
    }
    putUnits(fields, row.units);
    if (row.jitter) {
      fields.raw("jitter_mean", cost::format(row.jitter->mean));
      fields.raw("jitter_p95", cost::format(row.jitter->high));
    }
    if (row.synthesized)
      putSynthesized(fields, *row.synthesized);
    if (row.fits)
      fields("fits", *row.fits);
  };
  Writer writer(out);
  writer.object(
      [&](JsonFields &fields) {
        fields("format", "ppcc.comparison");
        fields("version", 1);
        fields("work_of", isPerRank ? "rank" : "stage");
        fields.objects("rows", rows, put);
      },
      indentedJson);
  writer.put('\n');
}

} // namespace

int ppcc::runCompare(const Invocation &call) {
  CompareOptions options;
  OptionParser parser(call, "ppcc compare");
  declare(parser, options);
  if (std::optional<int> code = parser.parse())
    return *code;
  if (options.isPage() && options.synthesizes)
    return parser.usageError("--synthesize has no place in --format=html");
  for (const Sweep &sweep : options.sweeps)
    if (findBy(options.request.params, sweep.name, &sema::ParamValue::name)) {
      call.err << "error: -D and --sweep both give `" << sweep.name << "`\n";
      return Usage;
    }
  size_t runs =
      options.inputs.size() * Comparison::combinations(options.sweeps);
  Progress progress(call.err, runs);
  Comparison comparison{options, call.err, progress};
  auto session = consoleSession(call, options.console, [&](Diagnostic &found) {
    progress.clear();
    if (!comparison.running.empty())
      found.notes.push_back({{}, "while comparing " + comparison.running});
  });
  constexpr size_t maxRuns = 100'000;
  if (runs > maxRuns) {
    session->diags.report<diag::TooManyRuns>({}, runs, maxRuns);
    return Errors;
  }
  if (!prepareOutputs(StringRef(options.output), call.out, *session))
    return Errors;
  ExitCode code = comparison.run(*session);
  progress.clear();
  if (code != Success)
    return code;
  return writeOutput(options.output, call.out, *session, [&](raw_ostream &s) {
    EmitContext context{session->diags, session->sources, {}};
    if (options.isPage())
      return emitPage(comparison.runs, s, context);
    // With limits: what fits first, the fastest first.
    if (llvm::any_of(comparison.rows,
                     [](const Row &row) { return row.fits.has_value(); }))
      llvm::stable_sort(comparison.rows, [](const Row &a, const Row &b) {
        return std::pair(!a.fits.value_or(true), a.makespan) <
               std::pair(!b.fits.value_or(true), b.makespan);
      });
    if (options.format == "json")
      return printJson(comparison.rows, options.request.costs.perRank, s);
    bool isCsv = options.format == "csv";
    tableOf(options, comparison.rows, isCsv ? &Row::metrics : &Row::shown)
        .print(s, isCsv                          ? TableStyle::Csv
                  : options.format == "markdown" ? TableStyle::Markdown
                                                 : TableStyle::Text);
    if (!isCsv)
      s << "\nbubble rate: of the longest span of a rank; global: of the "
           "makespan\nwork: what a rank computes for one microbatch"
        << (options.request.costs.perRank
                ? "; each of its n stages takes 1/n of the costs and memory "
                  "here, all in `report` (--work=stage)\n"
                : ", all of it in each stage (--work=rank: divided among "
                  "them)\n");
    if (!isCsv && options.synthesizes)
      s << "synthesized: the best order found for the placement, in the memory "
           "of the schedule\n";
    if (!isCsv)
      printDifference(comparison.rows, s);
    std::set<std::string> refusals;
    for (const Row &row : comparison.rows)
      if (!isCsv && row.synthesized && !row.synthesized->makespan &&
          refusals.insert(row.schedule + row.synthesized->refusal).second)
        s << printable(row.schedule) << ": " << row.synthesized->refusal
          << '\n';
  });
}
