// The options of `ppcc build`, `check` and `report`.
#include "Options.h"

#include "ppcc/Driver/Output.h"

#include "llvm/Support/Path.h"

using namespace ppcc;

static void addDepfile(OptionParser &parser, BuildOptions &options) {
  parser.onlyIf(
      [&options] { return options.output != "-"; },
      "it lists the inputs of the file of --output, and none is written",
      [&] {
        parser.output("--depfile", options.depfile,
                      "Write a Make rule with the input files of the output");
      });
}

constexpr StringRef inputSummary =
    "A schedule or program: a file (FILE:NAME for one of its schedules), `-` "
    "for standard input, or the name of a library schedule";

static void addWatch(OptionParser &parser, BuildOptions &options) {
  parser.flag("--watch", options.watch,
              "Compile again whenever an input file changes");
  parser.addCheck([&options]() -> std::string {
    return options.watch && options.request.input == "-"
               ? "--watch waits for files to change, and none is read"
               : "";
  });
}

/// What commands that compile one input have in common.
static void addCommonOptions(OptionParser &parser, BuildOptions &options) {
  addWatch(parser, options);
  addCompileOptions(parser, options);
  parser.group("For builds and other tools", [&] {
    forPrograms(parser, options, [&] {
      parser.flag("--no-families", options.noFamilies,
                  "Expand and verify all microbatches, even where a proof for "
                  "all M is faster");
    });
  });
}

static void addTimeline(OptionParser &parser, Options &options) {
  parser.flag("--timeline", options.timeline,
              "Also draw a timeline on standard error");
}

/// An option of passes that do not run is a mistake.
static std::string optionWithoutPass(const Request &request) {
  const CommRequest &comm = request.comm;
  const std::tuple<bool, StringRef, StringRef> options[] = {
      {comm.order.has_value(), "--comm-order", "inject-comm"},
      {comm.fusion, "--fuse", "fuse-comm"},
      {comm.prefetch.has_value(), "--prefetch",
       "inject-comm or verify-buffers"},
      {comm.preconnect.has_value(), "--preconnect", "preconnect"},
      {request.dynamic != DynamicRule::None, "--dynamic", "verify-dynamic"},
      {request.rolled, "--rolled", "roll"}};
  SmallVector<StringRef> names;
  StringRef(request.passes.passes).split(names, ',');
  for (StringRef &name : names)
    name = name.trim();
  if (!request.passes.passes.empty())
    for (auto [isGiven, option, passes] : options)
      if (isGiven &&
          llvm::none_of(llvm::split(passes, " or "), [&](StringRef one) {
            return llvm::is_contained(names, one);
          }))
        return fmt::format("{} is for {}, which --passes does not name", option,
                           passes);
  return "";
}

static void addDeveloperOptions(OptionParser &parser, Options &options) {
  parser.group("For developers of ppcc", [&] {
    forPrograms(parser, options, [&] { addPassOptions(parser, options); });
  });
  parser.addCheck([&options] { return optionWithoutPass(options.request); });
}

/// Declares what says how one format is written.
static void addFormatOptions(OptionParser &parser, Options &options) {
  EmitOptions &emit = options.emitOptions;
  forFormats(parser, options, Emitter::Torch, [&] {
    parser.parsed("--torch-version",
                  "The PyTorch version that reads torch-csv, such as 2.9",
                  [&](const std::string &text) -> std::string {
                    auto version = parseTorchVersion(text);
                    emit.torch.version = version.value_or(TorchVersion());
                    return version
                               ? ""
                               : "`" + text + "` is not a version such as 2.9";
                  });
  });
  parser.onlyIf(
      [&options] { return options.emit == "torch-csv"; },
      "it is for --emit=torch-csv; PyTorch moves parameters by itself "
      "when it places the messages",
      [&] {
        parser.flag("--torch-fsdp", emit.torch.fsdp,
                    "Write UNSHARD and RESHARD into torch-csv");
      });
  forFormats(parser, options, Emitter::Symbol, [&] {
    parser.parsed("--cpp-symbol", "The name of the variable that cpp defines",
                  [&](const std::string &text) -> std::string {
                    emit.cppSymbol = text;
                    return isCppSymbol(text)
                               ? ""
                               : "`" + text +
                                     "` cannot be the name of a variable";
                  });
  });
}

/// Those of programs for all values of a parameter.
constexpr std::array<StringRef, 2> familyFormats = {"json", "cpp"};

/// Declares what is for formats that hold all of a program.
static void forWholePrograms(OptionParser &parser, const Options &options,
                             function_ref<void()> declare) {
  parser.onlyIf(
      [&options] {
        const Emitter *emitter = findEmitter(options.emit);
        return emitter && emitter->programs != Emitter::Flat;
      },
      "it is for --emit=json, cpp, ir", declare);
}

/// Takes the format that the extension of the output stands for, if any; gives
/// what is wrong.
static std::string setFormatByExtension(BuildOptions &options) {
  StringRef extension = llvm::sys::path::extension(options.output);
  if (extension == ".pdf" || extension == ".png")
    return fmt::format("--output: no format writes {0} files; write an svg "
                       "and convert it, as with `rsvg-convert -f {0}`",
                       extension.drop_front());
  std::vector<StringRef> formats;
  for (const Emitter &emitter : emitters())
    if (!emitter.extension.empty() &&
        "." + emitter.extension.str() == extension)
      formats.push_back(emitter.name);
  if (formats.size() > 1)
    return fmt::format("--output: several formats write {} files; choose one "
                       "by --emit={}",
                       extension.drop_front(), llvm::join(formats, ", "));
  if (!formats.empty())
    options.emit = formats.front();
  return "";
}

/// Declares what says what is written.
static void addOutputOptions(OptionParser &parser, BuildOptions &options) {
  addOutput(parser, options.output);
  std::vector<StringRef> kinds = namesIn(emitters(), &Emitter::name);
  kinds.push_back("ast");
  parser.choice("--emit",
                "The output format; json, or that of the output's extension",
                kinds, options.emit);
  parser.afterParse([&]() -> std::string {
    return parser.isGiven("--emit") ? "" : setFormatByExtension(options);
  });
  forWholePrograms(parser, options, [&] {
    parser.flag("--rolled", options.request.rolled,
                "Write repeated actions as loops (json, ir; cpp always does)");
  });
  parser.value("--for", "NAME", options.free,
               "Write one program for all values of this parameter, proven for "
               "each (" +
                   llvm::join(familyFormats, ", ") + ")");
}

/// The same, of what fewer ask for.
static void addRareOutputOptions(OptionParser &parser, BuildOptions &options) {
  parser.group("Communication", [&] {
    forWholePrograms(parser, options, [&] {
      parser.choice("--preconnect",
                    "Write the order in which to open connections; auto, the "
                    "default: on stream transports",
                    {std::begin(preconnects), std::end(preconnects)},
                    options.request.comm.preconnect);
    });
  });
  parser.group("For builds and other tools", [&] {
    addDepfile(parser, options);
    addFormatOptions(parser, options);
  });
}

/// What speaks against the options of a build together, if anything.
static std::string findConflict(const BuildOptions &options) {
  const Request &request = options.request;
  if (request.input.empty() && !options.lists())
    return "no input: give a schedule file, or the name of one of the library";
  if (options.timeline && options.output != "-" &&
      isSameFile(options.output, "/dev/stderr", llvm::nulls()))
    return "--output is where --timeline draws";
  const Instrumentation &watch = request.passes.instrumentation;
  if (!options.free.empty() &&
      (!llvm::is_contained(familyFormats, options.emit) || options.timeline ||
       !options.depfile.empty() || request.rolled || options.noFamilies ||
       !request.passes.passes.empty() || request.passes.verifiesEach ||
       watch.printAfterAll || !watch.printAfter.empty() || watch.timePasses ||
       !watch.print.ranks.empty() || watch.print.microbatches))
    return "--for writes one file of --emit=" +
           llvm::join(familyFormats, " or ") +
           " and chooses passes and messages itself; it draws nothing";
  return "";
}

void ppcc::declareBuild(OptionParser &parser, BuildOptions &options) {
  auto isNoList = [&options] { return !options.lists(); };
  auto declareAll = [&] {
    addInput(parser, options, inputSummary, /*isRequired=*/false);
    auto ifWriting = [&](Declare *declare) {
      parser.onlyIf(
          [&options] { return !options.check && !options.listParams; },
          "nothing is written with --check and --list-params",
          [&] { declare(parser, options); });
    };
    ifWriting(addOutputOptions);
    forPrograms(parser, options, [&] {
      parser.flag("--check", options.check, "Verify only, write nothing");
      addTimeline(parser, options);
    });
    addCommonOptions(parser, options);
    ifWriting(addRareOutputOptions);
    parser.flag("--list-params", options.listParams,
                "Print the parameters of the schedule and exit");
  };
  parser.onlyIf(isNoList,
                "an option that lists and exits cannot be combined with others",
                declareAll);
  addErrorOptions(parser, options.console);
  parser.flag("--list-schedules", options.listSchedules,
              "Print the schedules of the library and exit");
  parser.onlyIf(isNoList,
                "an option that lists and exits cannot be combined with others",
                [&] {
                  addPictureOptions(parser, options);
                  addDeveloperOptions(parser, options);
                });
  parser.group("For developers of ppcc", [&] {
    parser.flag("--list-passes", options.listPasses,
                "Print the passes with their options and exit");
    parser.flag("--list-diagnostics", options.listDiagnostics,
                "Print the table of diagnostics as Markdown and exit");
  });
  parser.addCheck([&options] { return findConflict(options); });
}

void ppcc::declareCheck(OptionParser &parser, BuildOptions &options) {
  options.check = true;
  options.hasEmitOption = false;
  parser.positional("INPUT", options.inputs, inputSummary.str());
  parser.afterParse([&options]() -> std::string {
    takeInput(options.request, options.inputs.front());
    return options.inputs.size() > 1 && (options.watch || options.asJson)
               ? "--watch and --format=json are for one input"
               : "";
  });
  parser.choice("--dynamic",
                "Also verify it for a runtime whose ranks start what is ready: "
                "the first of their order after which the rest of that fits "
                "into their memory (hint), or whatever fits (ready)",
                {std::begin(dynamicRules), std::end(dynamicRules)},
                options.request.dynamic);
  parser.choice("--format", "The format of what is said of a good program",
                {{"text", false}, {"json", true}}, options.asJson);
  addTimeline(parser, options);
  addCommonOptions(parser, options);
  addErrorOptions(parser, options.console);
  addPictureOptions(parser, options);
  addDeveloperOptions(parser, options);
}

void ppcc::declareReport(OptionParser &parser, BuildOptions &options) {
  options.emit = "report";
  options.hasEmitOption = false;
  addInput(parser, options, inputSummary);
  addOutput(parser, options.output);
  parser.choice(
      "--format", "The format of the report",
      {{"text", std::string("report")}, {"json", std::string("report-json")}},
      options.emit);
  parser.formatByExtension(options.output);
  addSynthesize(parser, options.synthesizes);
  addCommonOptions(parser, options);
  addErrorOptions(parser, options.console);
  parser.group("For builds and other tools",
               [&] { addDepfile(parser, options); });
  addDeveloperOptions(parser, options);
}

std::optional<int> ppcc::parseOptions(const Invocation &call,
                                      BuildOptions &options, Declare *declare) {
  OptionParser parser(call, options.command);
  parser.version();
  declare(parser, options);
  if (std::optional<int> code = parser.parse())
    return code;
  Request &request = options.request;
  if (options.emit == "ast")
    request.until = Request::StopAfter::Parsed;
  else if (options.listParams)
    request.until = Request::StopAfter::Checked;
  request.torch = options.emitOptions.torch;
  if (options.noFamilies || request.dynamic != DynamicRule::None)
    request.byFamily = nullptr;
  const Emitter *emitter = findEmitter(options.emit);
  request.rolled |= request.passes.passes.empty() && emitter &&
                    emitter->programs == Emitter::Rolled;
  return std::nullopt;
}
