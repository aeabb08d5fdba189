// Declares and reads the options of ppcc.
#include "Options.h"

#include "ppcc/Driver/DumpFilter.h"
#include "ppcc/Support/Suggest.h"
#include "ppcc/Transforms/InjectComm.h"

#include "llvm/ADT/STLExtras.h"

#include <sstream>

using namespace ppcc;
using llvm::ArrayRef;
using llvm::raw_ostream;
using llvm::StringRef;

/// An option whose value must be one of some names; a misspelt one gets a
/// suggestion.
static void addChoice(CLI::App &app, std::string name, std::string summary,
                      std::vector<std::string> choices,
                      std::function<void(const std::string &)> set) {
  std::string list;
  for (const std::string &choice : choices)
    list += (list.empty() ? "" : ", ") + choice;
  auto take = [=](const std::string &value) {
    if (!llvm::is_contained(choices, value)) {
      std::vector<StringRef> names(choices.begin(), choices.end());
      throw CLI::ValidationError(name, "`" + value + "` is none of " + list +
                                           didYouMean(value, names));
    }
    set(value);
  };
  app.add_option_function<std::string>(name, take, summary + ": " + list)
      ->option_text("NAME");
}

/// An option that is read by a function which says what is wrong with the text.
static void addParsed(CLI::App &app, std::string name, std::string summary,
                      std::function<std::string(const std::string &)> parse) {
  app.add_option_function<std::string>(
         name,
         [=](const std::string &text) {
           if (std::string error = parse(text); !error.empty())
             throw CLI::ValidationError(name, error);
         },
         summary)
      ->option_text("TEXT");
}

static std::vector<std::string> emitKinds() {
  std::vector<std::string> kinds;
  for (const Emitter &emitter : emitters())
    kinds.push_back(emitter.name.str());
  kinds.push_back("ast");
  return kinds;
}

static void declare(CLI::App &app, Options &options) {
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.set_version_flag("--version", "ppcc " PPCC_VERSION,
                       "Print the version and exit");
  app.add_option(
      "INPUT", options.input,
      "The schedule: a file, `-` for standard input, or a name of the library");

  app.add_option_function<std::vector<std::string>>(
         "-D",
         [&options](const std::vector<std::string> &texts) {
           for (const std::string &text : texts) {
             auto [name, value] = StringRef(text).split('=');
             if (name.empty() || name.size() == text.size())
               throw CLI::ValidationError(
                   "-D", "`" + text + "` is not of the form NAME=VALUE");
             options.params.push_back({name.str(), value.str()});
           }
         },
         "Give a parameter of the schedule its value")
      ->option_text("NAME=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--schedule", options.schedule,
                 "The schedule to compile, when the file declares several")
      ->option_text("NAME");
  app.add_option("-o,--output", options.output,
                 "The file to write; `-`, the default, is standard output")
      ->option_text("FILE");
  addChoice(app, "--emit", "What to write", emitKinds(),
            [&](const std::string &kind) { options.emit = kind; });
  app.add_flag("--check", options.check, "Verify only, write nothing");
  std::vector<std::string> orders;
  for (const CommOrderInfo &order : commOrders())
    orders.push_back(order.name.str());
  addChoice(app, "--comm-order", "How to order sends and receives", orders,
            [&](const std::string &order) { options.commOrder = order; });
  addParsed(
      app, "--torch-version", "The PyTorch that reads torch-csv, such as 2.9",
      [&](const std::string &text) -> std::string {
        auto version = parseTorchVersion(text);
        options.emitOptions.torchVersion = version.value_or(TorchVersion());
        return version ? "" : "`" + text + "` is no version such as 2.9";
      });

  app.add_flag("--list-schedules", options.listSchedules,
               "Print the schedules of the library and exit");
  app.add_flag("--list-params", options.listParams,
               "Print the parameters of the schedule and exit");
  app.add_flag("--list-passes", options.listPasses,
               "Print the passes with their options and exit");
  app.add_flag("--list-diagnostics", options.listDiagnostics,
               "Print the table of diagnostics as Markdown and exit");

  Instrumentation &watch = options.instrumentation;
  app.add_option(
         "--passes", options.passes,
         "Run these passes, such as verify,inject-comm{order=sweep},verify")
      ->option_text("PIPELINE");
  app.add_flag("--print-after-all", watch.printAfterAll,
               "Print the program after each pass");
  app.add_option("--print-after", watch.printAfter,
                 "Print the program after these passes")
      ->delimiter(',')
      ->option_text("PASS,...");
  app.add_flag("--verify-each", options.verifyEach,
               "Verify after each pass that changes the program");
  app.add_flag("--time-passes", watch.timePasses,
               "Print the time that each step took");
  addParsed(app, "--print-rank",
            "Print only these ranks of programs, such as 3 or 0,2",
            [&](const std::string &text) {
              return parsePrintRanks(text, watch.print);
            });
  addParsed(app, "--print-microbatches",
            "Print only these microbatches of programs, such as 0..4",
            [&](const std::string &text) {
              return parsePrintMicrobatches(text, watch.print);
            });

  app.add_option("--max-actions", options.limits.maxActions,
                 "Refuse schedules with more actions")
      ->option_text("N")
      ->check(CLI::Range(uint64_t(1), uint64_t(UINT32_MAX / 4)));
  app.add_option("--max-errors", options.maxErrors,
                 "Stop after this many errors")
      ->option_text("N");
  app.add_option("--max-source-bytes", options.maxSourceBytes,
                 "Refuse larger source files")
      ->option_text("N");
  addChoice(app, "--color", "Colour in diagnostics",
            {"auto", "always", "never"},
            [&](const std::string &when) { options.color = when; });
}

/// What the first option of `args` that `app` does not have was probably meant
/// to be.
static std::string suggestOption(const CLI::App &app,
                                 ArrayRef<const char *> args) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  std::vector<StringRef> candidates(names.begin(), names.end());
  for (StringRef arg : args) {
    StringRef name = arg.split('=').first;
    if (name.starts_with("--") && !llvm::is_contained(candidates, name))
      return didYouMean(name, candidates);
  }
  return "";
}

std::optional<int> ppcc::parseCommandLine(CLI::App &app,
                                          ArrayRef<const char *> args,
                                          raw_ostream &out, raw_ostream &err) {
  try {
    app.parse(static_cast<int>(args.size()), args.data());
    return std::nullopt;
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) { // --help or --version.
      std::ostringstream text, unused;
      app.exit(error, text, unused);
      out << text.str();
      return Success;
    }
    err << app.get_name() << ": error: " << error.what();
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError))
      err << suggestOption(app, args);
    err << "\nnote: `" << app.get_name() << " --help` lists the options\n";
    return Usage;
  }
}

std::optional<int> ppcc::parseOptions(ArrayRef<const char *> args,
                                      Options &options, raw_ostream &out,
                                      raw_ostream &err) {
  CLI::App app("Compiles a pipeline-parallel schedule into the program of each "
               "rank: verified, with communication",
               "ppcc");
  app.get_formatter()->column_width(34);
  declare(app, options);
  if (std::optional<int> code = parseCommandLine(app, args, out, err))
    return code;
  auto wrong = [&](StringRef text) {
    err << "ppcc: error: " << text
        << "\nnote: `ppcc --help` lists the options\n";
    return Usage;
  };
  bool isList =
      options.listSchedules || options.listPasses || options.listDiagnostics;
  if (options.input.empty() && !isList)
    return wrong(
        "no input: give a schedule file, or the name of one of the library");
  if (options.commOrder && !options.passes.empty())
    return wrong("--comm-order and --passes exclude each other; write "
                 "inject-comm{order=...} into the pipeline");
  return std::nullopt;
}
