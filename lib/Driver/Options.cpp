// Declares and reads the options of ppcc.
#include "Options.h"

#include "ppcc/Compiler/PassRegistry.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Import/Importer.h"

using namespace ppcc;

static void addTransports(OptionParser &parser, CommRequest &comm,
                          bool *byData) {
  std::string list = llvm::join(llvm::split(transportNameList(), '|'), ", ");
  if (byData)
    list += ", data";
  parser.each(
      "--transport", "NAME,...",
      "Prove that the program cannot hang on these: " + list,
      [&comm, byData, list](const std::string &name) -> std::string {
        if (byData && name == "data")
          return *byData = true, "";
        auto transport = findTransport(name);
        if (!transport)
          return "`" + name + "` is none of " + list +
                 didYouMean(name, transportNames());
        if (!findBy(comm.transports, name, &Transport::name))
          comm.transports.push_back(*transport);
        return "";
      },
      ',');
}

static void addCommunication(OptionParser &parser, CommRequest &comm,
                             bool *byData) {
  parser.group("Communication", [&] {
    parser.choice(
        "--comm-order", "How to order sends and receives",
        namesIn(commOrders(), &CommOrderInfo::name),
        [&](const std::string &order) { comm.order = findCommOrder(order); });
    parser.choice(
        "--fuse", "How to post neighbouring messages together",
        namesIn(fusions(), &FusionInfo::name),
        [&](const std::string &fusion) { comm.fusion = findFusion(fusion); });
    parser.number("--prefetch", comm.prefetch, 1, UINT32_MAX,
                  "Post at most this many receives of an edge ahead of their "
                  "readers");
    parser.choice("--preconnect",
                  "List the connections to open first: auto, the default, does "
                  "on streams",
                  {std::begin(preconnects), std::end(preconnects)},
                  comm.preconnect);
    addTransports(parser, comm, byData);
  });
}

void ppcc::addCostOptions(OptionParser &parser, CostRequest &request) {
  parser.group("Costs", [&] {
    parser.each("--cost", "NAME=VALUE",
                "The time of an action kind (F=1.5), of a node (F.mlp=0.5), of "
                "a kind in "
                "a layer of the layout (F.t=0.2: summed over the layers of a "
                "stage), of "
                "a whole group (overlap=2.5, group.sum=0.8), of a message "
                "(latency=0.1; "
                "bytes and bandwidth); the memory of an action (memory.F=2), "
                "static of a stage, limit of a rank",
                [&](const std::string &text) {
                  request.settings.push_back(text);
                  return checkCost(text);
                });
    parser.each("--costs", "FILE", request.files,
                "Read costs from a JSON file, see docs/reports.md; --cost "
                "overrides it");
  });
}

static std::string parseTimeRange(StringRef text, PictureOptions &options) {
  auto [first, last] = text.split("..");
  auto from = cost::parse(first), to = cost::parse(last);
  if (!from || !to || *from >= *to)
    return fmt::format("`{}` is no range of times; expected `0..12.5`", text);
  options.times = {*from, *to};
  return "";
}

void ppcc::addPictureOptions(OptionParser &parser, PictureOptions &options) {
  parser.group("Pictures", [&] {
    parser.parsed(
        "--time-range", "Draw only this span of time, such as 0..12.5",
        [&](const std::string &text) { return parseTimeRange(text, options); });
    // First, since what is said besides stands above it.
    parser.choice("--preset",
                  "Width and letters of an svg for a paper of two columns, or "
                  "its page",
                  {"column", "page"}, [&](const std::string &name) {
                    // 85 and 178 mm, and letters of 7 pt, at 96 pixels an inch.
                    options.width = name == "column" ? 321 : 672;
                    options.fontSize = 9;
                  });
    parser.number("--width", options.width, 20, 20000,
                  "Columns of a timeline, pixels of an svg or pdf");
    parser.flag("--arrows", options.arrows,
                "Draw in an svg what goes from rank to rank");
    parser.flag(
        "--memory", options.memory,
        "Draw in an svg or timeline what each rank holds, and its limit");
    parser.value("--title", "TEXT", options.title, "The title of an svg");
    parser.flag("--no-legend", options.hidesLegend,
                "Draw no legend below an svg");
    parser.number("--font-size", options.fontSize, 4, 72,
                  "Pixels of the letters of an svg; 9");
  });
}

static std::string parsePrintRanks(StringRef text, PrintOptions &options) {
  options.ranks.clear();
  for (StringRef part : llvm::split(text, ',')) {
    uint32_t rank;
    if (part.getAsInteger(10, rank))
      return fmt::format("`{}` is no rank; expected `3` or `0,2`", part);
    options.ranks.push_back(RankId(rank));
  }
  return "";
}

static std::string parsePrintMicrobatches(StringRef text,
                                          PrintOptions &options) {
  uint32_t first, end;
  auto [from, to] = text.split("..");
  bool isOne = !text.contains("..");
  if (from.getAsInteger(10, first) || first == UINT32_MAX ||
      (!isOne && (to.getAsInteger(10, end) || end < first)))
    return fmt::format(
        "`{}` is no range of microbatches; expected `2` or `0..4`", text);
  if (isOne)
    end = first + 1;
  options.microbatches = {first, end};
  return "";
}

void ppcc::addPassOptions(OptionParser &parser, PassRequest &request,
                          bool &listPasses) {
  parser.group("For developers of ppcc", [&] {
    Instrumentation &watch = request.instrumentation;
    parser.value("--passes", "PIPELINE", request.passes,
                 "Run these passes, such as "
                 "verify,inject-comm{order=sweep},verify");
    parser.flag("--print-after-all", watch.printAfterAll,
                "Print the program after each pass");
    parser.each(
        "--print-after", "PASS,...", "Print the program after these passes",
        [&](const std::string &name) -> std::string {
          PassRegistry registry = makePassRegistry();
          watch.printAfter.push_back(name);
          return registry.find(name) ? ""
                                     : "`" + name + "` is no pass" +
                                           didYouMean(name, registry.names());
        },
        ',');
    parser.flag("--list-passes", listPasses,
                "Print the passes with their options and exit");
    parser.flag("--verify-each", request.verifiesEach,
                "Verify after each pass that changes the program");
    parser.flag("--time-passes", watch.timePasses,
                "Print the time that each step took");
    parser.parsed("--print-rank",
                  "Print only these ranks of programs, such as 3 or 0,2",
                  [&](const std::string &text) {
                    return parsePrintRanks(text, watch.print);
                  });
    parser.parsed("--print-microbatches",
                  "Print only these microbatches of programs, such as 0..4",
                  [&](const std::string &text) {
                    return parsePrintMicrobatches(text, watch.print);
                  });
  });
}

std::string ppcc::parseDefinition(StringRef text, sema::ParamValue &value) {
  auto [name, given] = text.split('=');
  value.name = name.str();
  value.value = given.str();
  return name.empty() || name.size() == text.size()
             ? "`" + text.str() + "` is not of the form NAME=VALUE"
             : "";
}

void ppcc::addCompileOptions(OptionParser &parser, Options &options) {
  addScheduleOptions(parser, options);
  Request &request = options.request;
  parser.group("For builds and other tools", [&] {
    parser.choice("--from", "The input is a program in this format",
                  namesIn(importers(), &Importer::name), request.from);
    parser.number("--microbatches", request.microbatches, 1,
                  Program::maxMicrobatches,
                  "How many microbatches a program has that does not say so");
  });
}

void ppcc::addScheduleOptions(OptionParser &parser, Options &options,
                              bool *byData) {
  Request &request = options.request;
  parser.each("-D", "NAME=VALUE",
              "Give a parameter of the schedule, the model or the cluster its "
              "value; model.NAME and cluster.NAME where two have the name",
              [&](const std::string &text) {
                return parseDefinition(text, request.params.emplace_back());
              });
  parser.value("--schedule", "NAME", request.schedule,
               "The schedule to compile, when the file declares several");
  parser.value("--model", "FILE[:NAME]", request.model,
               "What the work is: a model of a file, or by its name one that "
               "the schedule knows, or of the library; stands for that of the "
               "schedule");
  parser.value("--cluster", "FILE[:NAME]", request.cluster,
               "What the schedule runs on, likewise");
  parser.value("--layout", "LAYERS", request.layout,
               "The layers of each stage, as in `E|(tt|)*3,m|L`, or how to cut "
               "those of the model: evenly, by-cost");
  parser.each("--with", "RULE", request.rules,
              "Follow this rule, such as recompute(2, 1), behind those of the "
              "schedule");
  parser.value("--rules", "FILE", request.ruleFile,
               "The file that declares the rules of --with; std.pp");
  addCommunication(parser, request.comm, byData);
  addCostOptions(parser, request.costs);
  parser.group("For builds and other tools", [&] {
    parser.number("--max-actions", request.limits.maxActions, 1, UINT32_MAX / 4,
                  "Refuse schedules with more actions");
    parser.number("--max-source-bytes", request.maxSourceBytes, 0, UINT32_MAX,
                  "Refuse larger source files");
  });
  parser.choice("--color", "Colour in diagnostics and timelines",
                {"auto", "always", "never"}, options.console.color);
}

void ppcc::addDiagnosticsFormat(OptionParser &parser, ConsoleOptions &console) {
  parser.choice("--diagnostics-format",
                "How errors and warnings are written; json: a line each",
                {{"text", false}, {"json", true}}, console.asJson);
}

static void declareForTools(OptionParser &parser, Options &options) {
  parser.flag("--no-families", options.laysOut,
              "Lay out and verify all microbatches, also where a proof for all "
              "their numbers is quicker");
  parser.value("--depfile", "FILE", options.depfile,
               "Write a rule of Make that lists the files that the output "
               "comes from");
  addDiagnosticsFormat(parser, options.console);
  parser.parsed(
      "--torch-version", "The PyTorch that reads torch-csv, such as 2.9",
      [&](const std::string &text) -> std::string {
        auto version = parseTorchVersion(text);
        options.emitOptions.torch.version = version.value_or(TorchVersion());
        return version ? "" : "`" + text + "` is no version such as 2.9";
      });
  parser.flag("--torch-fsdp", options.emitOptions.torch.fsdp,
              "Tell PyTorch in torch-csv when to gather and free the "
              "parameters of stages");
  parser.parsed("--cpp-symbol", "The name of the variable that cpp exports",
                [&](const std::string &text) -> std::string {
                  options.emitOptions.cppSymbol = text;
                  return isCppSymbol(text) ? ""
                                           : "`" + text +
                                                 "` cannot be the name of a "
                                                 "variable";
                });
}

static std::string helpBelow() {
  std::string text =
      R"(Commands (`ppcc COMMAND --help`); without one, ppcc builds:)";
#define COMMAND(name, function, summary)                                       \
  text += fmt::format("\n  {:<15}{}", name, summary);
#include "Commands.def"
  return text + R"(

Examples:
  ppcc dualpipe -D P=8 -D M=20 --timeline -o program.json
  ppcc report my.pp --cost B=2 --transport=rendezvous
  ppcc compare 1f1b zbh1 my.pp -D P=8 -D M=32)";
}

static void declare(OptionParser &parser, Options &options) {
  parser.positional("INPUT", options.request.input,
                    "The schedule, or a program of another tool: a file, `-` "
                    "for standard input, or a name of the library");
  parser.footer(helpBelow());
  parser.group("Everyday", [&] {
    addOutput(parser, options.output);
    std::vector<StringRef> kinds = namesIn(emitters(), &Emitter::name);
    kinds.push_back("ast");
    parser.choice("--emit", "What to write", kinds, options.emit);
    parser.flag("--check", options.check, "Verify only, write nothing");
    parser.flag("--timeline", options.timeline,
                "Draw a timeline on standard error, beside the output");
    parser.value("--for", "NAME", options.free,
                 "Write a program for all values of this parameter, each of "
                 "which is proven (json, cpp, ir)");
    parser.flag("--watch", options.watch,
                "Go on: again whenever a file that was read changes");
    parser.flag("--rolled", options.request.rolled,
                "Write what repeats itself on a rank as loops (json, ir; "
                "cpp always has them)");
    parser.flag("--list-schedules", options.listSchedules,
                "Print the schedules of the library and exit");
    parser.flag("--list-params", options.listParams,
                "Print the parameters of the schedule and exit");
    addMaxErrors(parser, options.console.maxErrors);
    addCompileOptions(parser, options);
  });
  addPictureOptions(parser, options.emitOptions.picture);
  parser.group("For builds and other tools",
               [&] { declareForTools(parser, options); });
  addPassOptions(parser, options.request.passes, options.listPasses);
  parser.group("For developers of ppcc", [&] {
    parser.flag("--list-diagnostics", options.listDiagnostics,
                "Print the table of diagnostics as Markdown and exit");
  });
}

/// What of the options does not go together, if anything: the first rule that
/// is broken.
static std::string misuse(const Options &options) {
  const Request &request = options.request;
  const CommRequest &comm = request.comm;
  const Emitter *emitter = findEmitter(options.emit);
  bool isList =
      options.listSchedules || options.listPasses || options.listDiagnostics;
  bool hasPasses = !request.passes.passes.empty();
  bool hasDepfile = !options.depfile.empty();
  auto instead = [](StringRef option, StringRef words) {
    return fmt::format("{} and --passes exclude each other; {}", option, words);
  };
  struct Rule {
    bool isBroken;
    std::string text;
  };
  const Rule rules[] = {
      {hasDepfile && (options.output == "-" || options.check),
       "--depfile says what the file of --output comes from, and none is "
       "written"},
      {hasDepfile && isSameOutput(options.depfile, options.output),
       "--depfile and --output are the same file"},
      {options.watch && (request.input == "-" || isList),
       "--watch waits for files to change, and none is read"},
      {options.timeline && options.emit == "ast",
       "--timeline draws a program, but --emit=ast stops before there is one"},
      {options.emitOptions.torch.fsdp && options.emit != "torch-csv",
       "--torch-fsdp is for --emit=torch-csv; PyTorch moves parameters by "
       "itself when it places the messages"},
      {request.input.empty() && !isList,
       "no input: give a schedule file, or the name of one of the library"},
      {comm.fusion && comm.order && !hasPasses && comm.fusion->places,
       fmt::format("--comm-order and --fuse={} exclude each other: that fusion "
                   "places the messages itself",
                   comm.fusion ? comm.fusion->name : "")},
      {hasPasses && comm.order,
       instead("--comm-order",
               "write inject-comm{order=...} into the pipeline")},
      {hasPasses && comm.fusion,
       instead("--fuse", "write fuse-comm{mode=...} into the pipeline")},
      {hasPasses && !comm.transports.empty(),
       instead("--transport",
               "write verify-transport{transport=...} into the pipeline")},
      {hasPasses && comm.prefetch,
       instead("--prefetch", "write inject-comm{prefetch=...} and "
                             "verify-buffers{prefetch=...} into the pipeline")},
      {hasPasses && comm.preconnect,
       instead("--preconnect", "write preconnect into the pipeline")},
      {hasPasses && request.rolled,
       instead("--rolled", "end the pipeline with roll")},
      {request.rolled && (!emitter || emitter->programs == Emitter::Flat),
       "--rolled is for formats that have loops; --emit=" + options.emit +
           " has none"},
      {!options.free.empty() &&
           (!llvm::is_contained({"json", "cpp", "ir"}, options.emit) ||
            options.check || options.timeline || hasDepfile || hasPasses),
       "--for writes one file of --emit=json, cpp or ir, with the passes and "
       "messages that it chooses, and draws nothing"},
  };
  auto *broken = findBy(rules, true, &Rule::isBroken);
  return broken ? broken->text : "";
}

std::optional<int> ppcc::parseOptions(const Invocation &call,
                                      Options &options) {
  OptionParser parser(call, options.command,
                      "Compiles a pipeline-parallel schedule into the program "
                      "of each rank: verified, with communication");
  parser.version();
  declare(parser, options);
  if (std::optional<int> code = parser.parse())
    return code;
  if (std::string wrong = misuse(options); !wrong.empty())
    return parser.wrong(wrong);
  Request &request = options.request;
  if (options.emit == "ast")
    request.until = Request::Until::Parsed;
  else if (options.listParams)
    request.until = Request::Until::Checked;
  request.torch = options.emitOptions.torch;
  const Emitter *emitter = findEmitter(options.emit);
  request.rolled |= request.passes.passes.empty() && emitter &&
                    emitter->programs == Emitter::Rolled;
  return std::nullopt;
}
