// Declares and reads the options of ppcc.
#include "Options.h"

#include "PictureOptions.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/IR/Transport.h"
#include "ppcc/Support/Suggest.h"
#include "ppcc/Transforms/FuseComm.h"
#include "ppcc/Transforms/InjectComm.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

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

static void addProgramOptions(OptionParser &parser, Options &options) {
  std::vector<std::string> formats;
  for (const Importer &importer : importers())
    formats.push_back(importer.name.str());
  parser.choice("--from", "The input is a program in this format", formats,
                [&](const std::string &format) { options.from = format; });
  parser.number("--microbatches", options.importOptions.microbatches, 1,
                Program::maxMicrobatches,
                "How many microbatches a program has that does not say so");
}

static void addTransports(OptionParser &parser, Options &options) {
  std::string list = llvm::join(llvm::split(transportNameList(), '|'), ", ");
  parser.each(
      "--transport", "NAME,...",
      "Prove that the program cannot hang on these: " + list,
      [&options, list](const std::string &name) -> std::string {
        if (!llvm::is_contained(options.transports, name))
          options.transports.push_back(name);
        return findTransport(name) ? ""
                                   : "`" + name + "` is none of " + list +
                                         didYouMean(name, transportNames());
      },
      ',');
}

static void addCommunication(OptionParser &parser, Options &options) {
  std::vector<std::string> orders;
  for (const CommOrderInfo &order : commOrders())
    orders.push_back(order.name.str());
  parser.choice("--comm-order", "How to order sends and receives", orders,
                [&](const std::string &order) { options.commOrder = order; });
  std::vector<std::string> fusionNames;
  for (const FusionInfo &fusion : fusions())
    fusionNames.push_back(fusion.name.str());
  parser.choice("--fuse", "How to post neighbouring messages together",
                fusionNames,
                [&](const std::string &fusion) { options.fusion = fusion; });
  parser.number("--prefetch", options.prefetch, 1, UINT32_MAX,
                "Post at most this many receives of an edge ahead of their "
                "readers");
  parser.choice("--preconnect",
                "List the connections to open first: auto, the default, does "
                "on streams",
                {"auto", "on", "off"},
                [&](const std::string &when) { options.preconnect = when; });
  addTransports(parser, options);
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
  parser.each("-D", "NAME=VALUE", "Give a parameter of the schedule its value",
              [&](const std::string &text) {
                return parseDefinition(text, options.params.emplace_back());
              });
  parser.value("--schedule", "NAME", options.schedule,
               "The schedule to compile, when the file declares several");
  parser.value("--layout", "LAYERS", options.layout,
               "The layers of each stage, as in `E|(tt|)*3,m|L`; stands for "
               "that of the schedule");
  parser.each("--with", "RULE", options.rules,
              "Follow this rule, such as recompute(2, 1), behind those of the "
              "schedule");
  parser.value("--rules", "FILE", options.ruleFile,
               "The file that declares the rules of --with; std.pp");
  addCommunication(parser, options);
  addCostOptions(parser, options.costs);
  addProgramOptions(parser, options);
  parser.number("--max-actions", options.limits.maxActions, 1, UINT32_MAX / 4,
                "Refuse schedules with more actions");
  parser.number("--max-source-bytes", options.maxSourceBytes, 0, UINT32_MAX,
                "Refuse larger source files");
  parser.choice("--color", "Colour in diagnostics and timelines",
                {"auto", "always", "never"},
                [&](const std::string &when) { options.color = when; });
}

static void declare(OptionParser &parser, Options &options) {
  parser.positional("INPUT", options.input,
                    "The schedule, or a program of another tool: a file, `-` "
                    "for standard input, or a name of the library");
  addCompileOptions(parser, options);
  parser.footer("`ppcc compare --help` and `ppcc diff --help` tell of these "
                "two commands.");
  addOutput(parser, options.output);
  parser.value("--depfile", "FILE", options.depfile,
               "Write a rule of Make that lists the files that the output "
               "comes from");
  parser.choice("--emit", "What to write", emitKinds(),
                [&](const std::string &kind) { options.emit = kind; });
  parser.flag("--timeline", options.timeline,
              "Draw a timeline on standard error, beside the output");
  addPictureOptions(parser, options.emitOptions.picture);
  parser.flag("--rolled", options.rolled,
              "Write what repeats itself on a rank as loops (json, ir; "
              "cpp always has them)");
  parser.flag("--check", options.check, "Verify only, write nothing");
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

  parser.choice("--diagnostics-format",
                "How errors and warnings are written: text, json (a line each)",
                {"text", "json"}, [&](const std::string &format) {
                  options.jsonDiagnostics = format == "json";
                });

  parser.flag("--list-schedules", options.listSchedules,
              "Print the schedules of the library and exit");
  parser.flag("--list-params", options.listParams,
              "Print the parameters of the schedule and exit");
  parser.flag("--list-diagnostics", options.listDiagnostics,
              "Print the table of diagnostics as Markdown and exit");

  addPassOptions(parser, options);
}

std::optional<int> ppcc::parseOptions(ArrayRef<const char *> args,
                                      Options &options, raw_ostream &out,
                                      raw_ostream &err) {
  OptionParser parser("ppcc",
                      "Compiles a pipeline-parallel schedule into the program "
                      "of each rank: verified, with communication");
  parser.version();
  declare(parser, options);
  if (std::optional<int> code = parser.parse(args, out, err))
    return code;
  auto wrong = [&](StringRef text) { return parser.wrong(text, err); };
  bool isList =
      options.listSchedules || options.listPasses || options.listDiagnostics;
  if (!options.depfile.empty() && (options.output == "-" || options.check))
    return wrong("--depfile says what the file of --output comes from, and "
                 "none is written");
  if (!options.depfile.empty() &&
      isSameOutput(options.depfile, options.output))
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
