// The options that commands have in common.
#include "Families.h"

#include "ppcc/Basic/Diagnostics/Simulation.h"
#include "ppcc/Compiler/CommPolicy.h"
#include "ppcc/Import/Importer.h"
#include "ppcc/Support/Suggest.h"

using namespace ppcc;

static void addTransports(OptionParser &parser, CommRequest &comm,
                          bool *dataOnly) {
  std::string list = llvm::join(llvm::split(transportNameList(), '|'), ", ");
  if (dataOnly)
    list += ", data";
  parser.repeated(
      "--transport", "NAME,...",
      "Prove that the program cannot hang on these: " + list,
      [&comm, dataOnly, list](const std::string &name) -> std::string {
        if (dataOnly && name == "data")
          return *dataOnly = true, "";
        auto transport = findTransport(name);
        if (std::string known = transportsOf(name);
            !transport && !known.empty())
          return fmt::format("`{}` is {}", name, known);
        if (!transport)
          return "invalid value `" + name + "`; expected one of " + list +
                 didYouMean(name, transportNames());
        if (!findBy(comm.transports, name, &Transport::name))
          comm.transports.push_back(*transport);
        return "";
      },
      ',');
}

static void addCommunication(OptionParser &parser, const PassRequest &passes,
                             CommRequest &comm, bool *dataOnly) {
  parser.addCheck(
      [&] { return passes.passes.empty() ? conflictIn(comm) : ""; });
  parser.group("Communication", [&] {
    parser.choice(
        "--comm-order", "The order of sends and receives",
        namesIn(commOrders(), &CommOrderInfo::name),
        [&](const std::string &order) { comm.order = findCommOrder(order); });
    parser.choice(
        "--fuse", "Which adjacent messages to post as one batch",
        namesIn(fusions(), &FusionInfo::name),
        [&](const std::string &fusion) { comm.fusion = findFusion(fusion); });
    parser.number(
        "--prefetch", comm.prefetch, 1, UINT32_MAX,
        "Post at most this many receives of an edge before their readers");
    addTransports(parser, comm, dataOnly);
  });
}

/// Adds `--cost` and `--costs`.
static void addCostOptions(OptionParser &parser, CostRequest &request) {
  parser.group("Costs", [&] {
    parser.repeated(
        "--cost", "NAME=VALUE",
        "The time of an action kind (F=1.5), a node (F.mlp=0.5), a kind in a "
        "layer (F.t=0.2, summed over the layers of a stage), an overlap group "
        "(overlap=2.5, group.sum=0.8) or a message (latency=0.1; bytes and "
        "bandwidth); memory of an action (memory.F=2); static memory of a "
        "stage (static=3); memory limit of a rank (limit=8)",
        [&](const std::string &text) {
          request.settings.push_back(text);
          return checkCost(text);
        });
    parser.repeated(
        "--costs", "FILE", request.files,
        "Read costs from a JSON file (docs/reports.md); --cost overrides it");
  });
}

static std::string parseTimeRange(StringRef text, PictureOptions &options) {
  auto [first, last] = text.split("..");
  auto from = cost::parse(first), to = cost::parse(last);
  if (!from || !to || *from >= *to)
    return fmt::format("`{}` is not a range of times; expected `0..12.5`",
                       text);
  options.times = {*from, *to};
  return "";
}

void ppcc::forFormats(OptionParser &parser, const Options &options,
                      unsigned reads, function_ref<void()> declare) {
  std::vector<StringRef> names;
  for (const Emitter &emitter : emitters())
    if ((emitter.reads & reads) &&
        (options.hasEmitOption ||
         emitter.name == (options.check ? "timeline" : options.emit)))
      names.push_back(emitter.name);
  if (names.empty())
    return;
  auto isRead = [&options, reads] {
    auto readsOption = [&](StringRef format) {
      const Emitter *emitter = findEmitter(format);
      return emitter && (emitter->reads & reads);
    };
    return (!options.check && readsOption(options.emit)) ||
           (options.timeline && readsOption("timeline"));
  };
  std::string formats =
      options.hasEmitOption ? "--emit=" + llvm::join(names, ", ") : "";
  if (llvm::is_contained(names, "timeline"))
    formats += (formats.empty() ? "" : " and ") + std::string("--timeline");
  parser.onlyIf(isRead, "it is for " + formats, declare);
}

void ppcc::addPictureOptions(OptionParser &parser, Options &all) {
  PictureOptions &options = all.emitOptions.picture;
  auto when = [&](unsigned reads, function_ref<void()> declare) {
    parser.group("Pictures", [&] { forFormats(parser, all, reads, declare); });
  };
  when(Emitter::Span, [&] {
    parser.parsed(
        "--time-range", "Draw only this span of time, such as 0..12.5",
        [&](const std::string &text) { return parseTimeRange(text, options); });
  });
  // First, since what is said besides stands above it.
  when(Emitter::Figure, [&] {
    parser.choice("--preset",
                  "Width and font size of an svg for a paper: a column, or a "
                  "page of two columns",
                  {"column", "page"}, [&](const std::string &name) {
                    // 85 and 178 mm, and letters of 7 pt, at 96 pixels an inch.
                    options.width = name == "column" ? 321 : 672;
                    options.fontSize = 9;
                  });
  });
  when(Emitter::Size, [&] {
    parser.number("--width", options.width, 20, 20000,
                  "Columns of a timeline, pixels of an svg");
    parser.flag("--memory", options.memory,
                "Draw the memory of each rank and its limit (svg, timeline)");
  });
  when(Emitter::Figure, [&] {
    parser.flag("--arrows", options.arrows, "Draw messages as arrows (svg)");
    parser.value("--title", "TEXT", options.title, "The title of an svg");
    parser.flag("--no-legend", options.hidesLegend,
                "Draw no legend below an svg");
    parser.number("--font-size", options.fontSize, 4, 72,
                  "Font size of an svg in pixels; 9 by default");
  });
}

static std::string parsePrintRanks(StringRef text, PrintOptions &options) {
  options.ranks.clear();
  for (StringRef part : llvm::split(text, ',')) {
    uint32_t rank;
    if (part.getAsInteger(10, rank))
      return fmt::format("`{}` is not a rank; expected `3` or `0,2`", part);
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
        "`{}` is not a range of microbatches; expected `2` or `0..4`", text);
  if (isOne)
    end = first + 1;
  options.microbatches = {first, end};
  return "";
}

/// Declares what says which actions are shown where programs are: between
/// passes, and in formats that read it.
static void addPrintOptions(OptionParser &parser, Options &options) {
  Instrumentation &watch = options.request.passes.instrumentation;
  auto when = [&](Emitter::OptionGroup reads, function_ref<void()> declare) {
    auto isShown = [&options, &watch, reads] {
      const Emitter *emitter = findEmitter(options.emit);
      return watch.printAfterAll || !watch.printAfter.empty() ||
             options.timeline ||
             (!options.check && emitter && (emitter->reads & reads));
    };
    parser.onlyIf(isShown,
                  "this output cannot be restricted to a part of the program; "
                  "--print-after-all can",
                  declare);
  };
  when(Emitter::Ranks, [&] {
    parser.parsed("--print-rank",
                  "Print only these ranks of programs, such as 3 or 0,2",
                  [&](const std::string &text) {
                    return parsePrintRanks(text, watch.print);
                  });
  });
  when(Emitter::Microbatches, [&] {
    parser.parsed("--print-microbatches",
                  "Print only these microbatches of programs, such as 0..4",
                  [&](const std::string &text) {
                    return parsePrintMicrobatches(text, watch.print);
                  });
  });
  when(Emitter::Sites, [&] {
    parser.flag("--no-sites", watch.print.hidesSites,
                "Print programs without source locations");
  });
}

void ppcc::addPassOptions(OptionParser &parser, Options &options) {
  PassRequest &request = options.request.passes;
  Instrumentation &watch = request.instrumentation;
  parser.value("--passes", "PIPELINE", request.passes,
               "Run these passes, such as verify,inject-comm,verify");
  parser.flag("--print-after-all", watch.printAfterAll,
              "Print the program after each pass");
  parser.repeated(
      "--print-after", "PASS,...", "Print the program after these passes",
      [&](const std::string &name) -> std::string {
        PassRegistry registry = makePassRegistry();
        watch.printAfter.push_back(name);
        return registry.find(name) ? ""
                                   : "unknown pass `" + name + "`" +
                                         didYouMean(name, registry.names());
      },
      ',');
  parser.flag("--verify-each", request.verifiesEach,
              "Verify after each pass that changes the program");
  parser.flag("--time-passes", watch.timePasses,
              "Print the time that each step took");
  addPrintOptions(parser, options);
}

std::set<std::string> ppcc::parameterNames(const Compiled &compiled,
                                           const Request &request,
                                           Session &session) {
  std::set<std::string> names;
  for (const ParameterText &param : compiled.params) {
    StringRef name = StringRef(param.name).split('.').second;
    names.insert(param.name);
    names.insert(name.empty() ? "schedule." + param.name : name.str());
  }
  auto input = openInput(request, session);
  if (input && input->format && isFamilyFile(input->source, session.sources))
    for (const ProgramParam &param : compiled.program.params())
      names.insert(param.name);
  return names;
}

ExitCode ppcc::checkParameter(StringRef given,
                              const std::set<std::string> &known,
                              Session &session) {
  if (known.count(given.str()))
    return Success;
  session.diags.report<diag::NoSuchParameter>(
      {}, given, didYouMean(given, namesIn(known)));
  return Errors;
}

std::string ppcc::parseDefinition(StringRef text, sema::ParamValue &value) {
  auto [name, given] = text.split('=');
  value.name = name.str();
  value.value = given.str();
  auto [first, next] = given.split(',');
  if (next.contains('='))
    return fmt::format("`{}` is more than one; write `-D {}={} -D {}`", text,
                       name, first, next);
  return name.empty() || name.size() == text.size()
             ? "`" + text.str() + "` is not of the form NAME=VALUE"
             : "";
}

void ppcc::takeInput(Request &request, StringRef text) {
  auto [file, name] = splitName(text);
  request.schedule = name.str();
  request.input = file.str();
}

void ppcc::addInput(OptionParser &parser, Options &options, StringRef summary,
                    bool isRequired) {
  parser.positional("INPUT", options.request.input, summary.str(), isRequired);
  parser.afterParse([&request = options.request]() -> std::string {
    return takeInput(request, std::string(request.input)), "";
  });
}

void ppcc::forPrograms(OptionParser &parser, const Options &options,
                       function_ref<void()> declare) {
  parser.onlyIf(
      [&options] { return options.emit != "ast" && !options.listParams; },
      "--emit=ast and --list-params stop before there is a program", declare);
}

void ppcc::addCompileOptions(OptionParser &parser, Options &options) {
  addScheduleOptions(parser, options);
  Request &request = options.request;
  parser.group("For builds and other tools", [&] {
    parser.choice("--from", "The input is a program in this format",
                  namesIn(importers(), &Importer::name), request.from);
    forPrograms(parser, options, [&] {
      parser.number(
          "--microbatches", request.microbatches, 1, Program::maxMicrobatches,
          "The number of microbatches of a program that does not give it");
    });
  });
}

void ppcc::addScheduleOptions(OptionParser &parser, Options &options,
                              bool *dataOnly) {
  Request &request = options.request;
  request.byFamily = compileByFamily;
  forPrograms(parser, options, [&] {
    parser.repeated("-D", "NAME=VALUE",
                    "Set a parameter of the schedule, model or cluster; "
                    "model.NAME or cluster.NAME if two have the name",
                    [&](const std::string &text) {
                      return parseDefinition(text,
                                             request.params.emplace_back());
                    });
  });
  parser.onlyIf(
      [&options] { return options.emit != "ast"; },
      "--emit=ast stops before names are looked up",
      [&] {
        parser.value("--model", "FILE[:NAME]", request.model,
                     "The model: of a file, or by name one of the schedule or "
                     "the library; replaces that of the schedule");
        parser.value("--cluster", "FILE[:NAME]", request.cluster,
                     "The cluster that the schedule runs on, given likewise");
      });
  forPrograms(parser, options, [&] {
    parser.value("--layout", "LAYERS", request.layout,
                 "The layers of each stage, as in `E|(tt|)*3,m|L`, or how to "
                 "cut those of the model: evenly, by-cost");
    parser.repeated("--with", "RULE", request.rules,
                    "Apply this rule, such as recompute(2, 1), after those of "
                    "the schedule");
    parser.onlyIf(
        [&request] { return !request.rules.empty(); },
        "it is the file of the rules of --with, and none is given",
        [&] {
          parser.value(
              "--rules", "FILE", request.ruleFile,
              "The file that declares the rules of --with; std.pp by default");
        });
    if (options.hasMessages)
      addCommunication(parser, request.passes, request.comm, dataOnly);
    addCostOptions(parser, request.costs);
    parser.group("For builds and other tools", [&] {
      parser.number("--max-actions", request.limits.maxActions, 1,
                    UINT32_MAX / 4, "Refuse schedules with more actions");
    });
  });
  parser.group("For builds and other tools", [&] {
    parser.number("--max-source-bytes", request.maxSourceBytes, 0, UINT32_MAX,
                  "Refuse larger source files");
  });
  parser.choice("--color", "Color diagnostics and timelines",
                {"auto", "always", "never"}, options.console.color);
}

void ppcc::addErrorOptions(OptionParser &parser, ConsoleOptions &console) {
  parser.number("--max-errors", console.maxErrors, 0, UINT32_MAX,
                "Stop after this many errors");
  parser.group("For builds and other tools", [&] {
    parser.choice("--diagnostics-format",
                  "The format of errors and warnings; json: one line each",
                  {{"text", false}, {"json", true}}, console.asJson);
  });
}
