// Declares and reads the options of ppcc.
#include "Options.h"

#include "PictureOptions.h"
#include "ppcc/IR/Transport.h"
#include "ppcc/Support/Suggest.h"
#include "ppcc/Transforms/FuseComm.h"
#include "ppcc/Transforms/InjectComm.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

using namespace ppcc;
using llvm::ArrayRef;
using llvm::raw_ostream;
using llvm::StringRef;

static std::vector<std::string> emitKinds() {
  std::vector<std::string> kinds;
  for (const Emitter &emitter : emitters())
    kinds.push_back(emitter.name.str());
  kinds.push_back("ast");
  return kinds;
}

static void addProgramOptions(CLI::App &app, Options &options) {
  std::vector<std::string> formats;
  for (const Importer &importer : importers())
    formats.push_back(importer.name.str());
  addChoice(app, "--from", "The input is a program in this format", formats,
            [&](const std::string &format) { options.from = format; });
  app.add_option("--microbatches", options.importOptions.microbatches,
                 "How many microbatches a program has that does not say so")
      ->option_text("N")
      ->check(CLI::Range(uint32_t(1), Program::maxMicrobatches));
}

static void addTransports(CLI::App &app, Options &options) {
  auto take = [&](const std::vector<std::string> &names) {
    for (const std::string &name : names) {
      if (!findTransport(name))
        throw CLI::ValidationError(
            "--transport",
            "`" + name + "` is none of " +
                llvm::join(llvm::split(transportNameList(), '|'), ", ") +
                didYouMean(name, transportNames()));
      if (!llvm::is_contained(options.transports, name))
        options.transports.push_back(name);
    }
  };
  takeEach(app.add_option_function<std::vector<std::string>>(
                  "--transport", take,
                  "Prove that the program cannot hang on these: " +
                      llvm::join(llvm::split(transportNameList(), '|'), ", "))
               ->option_text("NAME,...")
               ->delimiter(','));
}

static void addCommunication(CLI::App &app, Options &options) {
  std::vector<std::string> orders;
  for (const CommOrderInfo &order : commOrders())
    orders.push_back(order.name.str());
  addChoice(app, "--comm-order", "How to order sends and receives", orders,
            [&](const std::string &order) { options.commOrder = order; });
  std::vector<std::string> fusionNames;
  for (const FusionInfo &fusion : fusions())
    fusionNames.push_back(fusion.name.str());
  addChoice(app, "--fuse", "How to post neighbouring messages together",
            fusionNames,
            [&](const std::string &fusion) { options.fusion = fusion; });
  app.add_option("--prefetch", options.prefetch,
                 "Post at most this many receives of an edge ahead of their "
                 "readers")
      ->option_text("N")
      ->check(CLI::Range(uint32_t(1), UINT32_MAX));
  addChoice(app, "--preconnect",
            "List the connections to open first: auto, the default, does on "
            "streams",
            {"auto", "on", "off"},
            [&](const std::string &when) { options.preconnect = when; });
  addTransports(app, options);
}

sema::ParamValue ppcc::parseDefinition(const std::string &text,
                                       const std::string &option) {
  auto [name, value] = StringRef(text).split('=');
  if (name.empty() || name.size() == text.size())
    throw CLI::ValidationError(option,
                               "`" + text + "` is not of the form NAME=VALUE");
  return {name.str(), value.str()};
}

void ppcc::addCompileOptions(CLI::App &app, Options &options) {
  takeEach(app.add_option_function<std::vector<std::string>>(
                  "-D",
                  [&options](const std::vector<std::string> &texts) {
                    for (const std::string &text : texts)
                      options.params.push_back(parseDefinition(text, "-D"));
                  },
                  "Give a parameter of the schedule its value")
               ->option_text("NAME=VALUE"));
  app.add_option("--schedule", options.schedule,
                 "The schedule to compile, when the file declares several")
      ->option_text("NAME");
  app.add_option("--layout", options.layout,
                 "The layers of each stage, as in `E|(tt|)*3,m|L`; stands for "
                 "that of the schedule")
      ->option_text("LAYERS");
  takeEach(app.add_option(
                  "--with", options.rules,
                  "Follow this rule, such as recompute(2, 1), behind those of "
                  "the schedule")
               ->option_text("RULE"));
  app.add_option("--rules", options.ruleFile,
                 "The file that declares the rules of --with; std.pp")
      ->option_text("FILE");
  addCommunication(app, options);
  addCostOptions(app, options.costs);
  addProgramOptions(app, options);
  app.add_option("--max-actions", options.limits.maxActions,
                 "Refuse schedules with more actions")
      ->option_text("N")
      ->check(CLI::Range(uint64_t(1), uint64_t(UINT32_MAX / 4)));
  app.add_option("--max-source-bytes", options.maxSourceBytes,
                 "Refuse larger source files")
      ->option_text("N")
      ->check(CLI::Range(uint64_t(0), uint64_t(UINT32_MAX)));
  addChoice(app, "--color", "Colour in diagnostics and timelines",
            {"auto", "always", "never"},
            [&](const std::string &when) { options.color = when; });
}

static void declare(CLI::App &app, Options &options) {
  app.add_option(
      "INPUT", options.input,
      "The schedule, or a program of another tool: a file, `-` for standard "
      "input, or a name of the library");
  addCompileOptions(app, options);
  app.footer("`ppcc compare --help` and `ppcc diff --help` tell of these two "
             "commands.");
  addOutput(app, options.output);
  app.add_option("--depfile", options.depfile,
                 "Write a rule of Make that lists the files that the output "
                 "comes from")
      ->option_text("FILE");
  addChoice(app, "--emit", "What to write", emitKinds(),
            [&](const std::string &kind) { options.emit = kind; });
  app.add_flag("--timeline", options.timeline,
               "Draw a timeline on standard error, beside the output");
  addPictureOptions(app, options.emitOptions.picture);
  app.add_flag("--rolled", options.rolled,
               "Write what repeats itself on a rank as loops (json, ir; "
               "cpp always has them)");
  app.add_flag("--check", options.check, "Verify only, write nothing");
  addParsed(
      app, "--torch-version", "The PyTorch that reads torch-csv, such as 2.9",
      [&](const std::string &text) -> std::string {
        auto version = parseTorchVersion(text);
        options.emitOptions.torch.version = version.value_or(TorchVersion());
        return version ? "" : "`" + text + "` is no version such as 2.9";
      });
  app.add_flag("--torch-fsdp", options.emitOptions.torch.fsdp,
               "Tell PyTorch in torch-csv when to gather and free the "
               "parameters of stages");

  addParsed(app, "--cpp-symbol", "The name of the variable that cpp exports",
            [&](const std::string &text) -> std::string {
              options.emitOptions.cppSymbol = text;
              return isCppSymbol(text) ? ""
                                       : "`" + text +
                                             "` cannot be the name of a "
                                             "variable";
            });

  addChoice(app, "--diagnostics-format",
            "How errors and warnings are written: text, json (a line each)",
            {"text", "json"}, [&](const std::string &format) {
              options.jsonDiagnostics = format == "json";
            });

  app.add_flag("--list-schedules", options.listSchedules,
               "Print the schedules of the library and exit");
  app.add_flag("--list-params", options.listParams,
               "Print the parameters of the schedule and exit");
  app.add_flag("--list-diagnostics", options.listDiagnostics,
               "Print the table of diagnostics as Markdown and exit");

  addPassOptions(app, options);
}

std::optional<int> ppcc::parseOptions(ArrayRef<const char *> args,
                                      Options &options, raw_ostream &out,
                                      raw_ostream &err) {
  CLI::App app("Compiles a pipeline-parallel schedule into the program of each "
               "rank: verified, with communication",
               "ppcc");
  addHelp(app);
  addVersion(app);
  declare(app, options);
  if (std::optional<int> code = parseCommandLine(app, args, out, err))
    return code;
  auto wrong = [&](StringRef text) { return reportUsage(app, text, err); };
  bool isList =
      options.listSchedules || options.listPasses || options.listDiagnostics;
  // As compilers do: the input would be gone.
  if (options.output != "-" &&
      llvm::sys::fs::equivalent(options.input, options.output))
    return wrong("the output `" + options.output + "` is the input");
  if (!options.depfile.empty() && (options.output == "-" || options.check))
    return wrong("--depfile says what the file of --output comes from, and "
                 "none is written");
  if (!options.depfile.empty() && options.depfile == options.output)
    return wrong("--depfile and --output are the same file");
  if (options.timeline && options.emit == "ast")
    return wrong("--timeline draws a program, but --emit=ast stops before "
                 "there is one");
  if (options.emitOptions.torch.fsdp && options.emit != "torch-csv")
    return wrong("--torch-fsdp is for --emit=torch-csv; PyTorch moves "
                 "parameters by itself when it places the messages");
  if (options.input.empty() && !isList)
    return wrong(
        "no input: give a schedule file, or the name of one of the library");
  if (options.commOrder && !options.passes.empty())
    return wrong("--comm-order and --passes exclude each other; write "
                 "inject-comm{order=...} into the pipeline");
  if (options.fusion && !options.passes.empty())
    return wrong("--fuse and --passes exclude each other; write "
                 "fuse-comm{mode=...} into the pipeline");
  if (options.fusion && options.commOrder &&
      findFusion(*options.fusion)->places)
    return wrong("--comm-order and --fuse=" + *options.fusion +
                 " exclude each other: that fusion places the messages itself");
  if (!options.transports.empty() && !options.passes.empty())
    return wrong("--transport and --passes exclude each other; write "
                 "verify-transport{transport=...} into the pipeline");
  if (options.prefetch && !options.passes.empty())
    return wrong("--prefetch and --passes exclude each other; write "
                 "inject-comm{prefetch=...} and verify-buffers{prefetch=...} "
                 "into the pipeline");
  if (options.preconnect && !options.passes.empty())
    return wrong("--preconnect and --passes exclude each other; write "
                 "preconnect into the pipeline");
  if (options.rolled && !options.passes.empty())
    return wrong("--rolled and --passes exclude each other; end the pipeline "
                 "with roll");
  const Emitter *emitter = findEmitter(options.emit);
  if (options.rolled && (!emitter || emitter->programs == Emitter::Flat))
    return wrong("--rolled is for formats that have loops; --emit=" +
                 options.emit + " has none");
  return std::nullopt;
}
