// Reads command lines, and runs passes as they say.
#include "ppcc/Driver/CommandLine.h"

#include "ppcc/Driver/DumpFilter.h"
#include "ppcc/Driver/PassRegistry.h"
#include "ppcc/Pass/PipelineParser.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"

#include <sstream>

using namespace ppcc;
using llvm::ArrayRef;
using llvm::raw_ostream;
using llvm::StringRef;

void ppcc::addHelp(CLI::App &app) {
  app.get_formatter()->column_width(34);
  app.set_help_flag("-h,--help", "Print this help and exit");
}

void ppcc::addVersion(CLI::App &app) {
  app.set_version_flag("--version", app.get_name() + " " PPCC_VERSION,
                       "Print the version and exit");
}

void ppcc::addOutput(CLI::App &app, std::string &output) {
  app.add_option("-o,--output", output,
                 "The file to write; `-`, the default, is standard output")
      ->option_text("FILE");
}

void ppcc::addMaxErrors(CLI::App &app, size_t &maxErrors) {
  app.add_option("--max-errors", maxErrors, "Stop after this many errors")
      ->option_text("N")
      ->check(CLI::Range(uint64_t(0), uint64_t(UINT32_MAX)));
}

void ppcc::takeEach(CLI::Option *option) {
  option->expected(1)->take_all()->allow_extra_args(false);
}

void ppcc::addChoice(CLI::App &app, std::string name, std::string summary,
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

void ppcc::addParsed(CLI::App &app, std::string name, std::string summary,
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

int ppcc::reportUsage(const CLI::App &app, StringRef text, raw_ostream &err) {
  err << app.get_name() << ": error: " << text << "\nnote: `" << app.get_name()
      << " --help` lists the options\n";
  return Usage;
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
    bool isUnknown =
        error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
    return reportUsage(
        app, error.what() + (isUnknown ? suggestOption(app, args) : ""), err);
  }
}

void ppcc::addPassOptions(CLI::App &app, PassCommandLine &options) {
  Instrumentation &watch = options.instrumentation;
  app.add_option(
         "--passes", options.passes,
         "Run these passes, such as verify,inject-comm{order=sweep},verify")
      ->option_text("PIPELINE");
  app.add_flag("--print-after-all", watch.printAfterAll,
               "Print the program after each pass");
  auto printAfter = [&](const std::vector<std::string> &names) {
    PassRegistry registry = makePassRegistry();
    for (const std::string &name : names)
      if (!registry.find(name))
        throw CLI::ValidationError("--print-after",
                                   "`" + name + "` is no pass" +
                                       didYouMean(name, registry.names()));
    watch.printAfter = names;
  };
  app.add_option_function<std::vector<std::string>>(
         "--print-after", printAfter, "Print the program after these passes")
      ->delimiter(',')
      ->option_text("PASS,...");
  app.add_flag("--list-passes", options.listPasses,
               "Print the passes with their options and exit");
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
  addMaxErrors(app, options.maxErrors);
}

bool ppcc::runPasses(StringRef text, const PassCommandLine &options,
                     Program &program, SourceManager &sources,
                     DiagnosticEngine &diags, raw_ostream &err) {
  PassRegistry registry = makePassRegistry();
  auto pipeline = parsePipeline(text, registry, sources, diags);
  if (!pipeline)
    return false;
  Pipeline verifier;
  Instrumentation instrumentation = options.instrumentation;
  instrumentation.out = &err;
  if (options.verifyEach) {
    verifier = *parsePipeline("verify", registry, sources, diags);
    instrumentation.verifyEach = &verifier;
  }
  PassContext context(sources, diags);
  return runPipeline(*pipeline, program, context, instrumentation);
}
