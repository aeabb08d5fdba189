// ppcc-opt: a program as text in, passes, a program as text out.
#include "ppcc/Driver/Opt.h"

#include "Options.h"
#include "ppcc/Driver/DumpFilter.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Driver/PassRegistry.h"
#include "ppcc/Pass/PipelineParser.h"

using namespace ppcc;
using llvm::raw_ostream;

namespace {

struct OptOptions {
  std::string input = "-", output = "-", passes;
  std::vector<std::string> printAfter;
  bool noPrint = false, verifyEach = false, listPasses = false, noSites = false;
  unsigned maxErrors = 100;
  Instrumentation instrumentation;
};

/// Declares the options. The values land in `options`.
void declare(CLI::App &app, OptOptions &options) {
  Instrumentation &instrumentation = options.instrumentation;
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.add_option("INPUT", options.input,
                 "The program as text; - is standard input");
  app.add_option("-o,--output", options.output,
                 "The file to write; - is standard output");
  app.add_option(
      "--passes", options.passes,
      "The passes to run, such as verify,inject-comm{order=sweep},verify");
  app.add_flag("--no-print", options.noPrint,
               "Do not write the program at the end");
  app.add_flag("--list-passes", options.listPasses,
               "Print the passes with their options and exit");
  app.add_flag("--print-after-all", instrumentation.printAfterAll,
               "Print the program after each pass");
  app.add_option("--print-after", instrumentation.printAfter,
                 "Print the program after these passes")
      ->delimiter(',');
  app.add_flag("--time-passes", instrumentation.timePasses,
               "Print the time that each pass took");
  app.add_flag("--verify-each", options.verifyEach,
               "Verify the input, and the result of each pass that changes it");
  app.add_flag("--no-sites", options.noSites,
               "Print programs without the places that actions come from");
  app.add_option("--max-errors", options.maxErrors,
                 "Stop after this many errors");
  // Left to themselves, values that begin with a digit and a comma would be
  // split.
  app.add_option_function<std::string>(
      "--print-rank",
      [&](const std::string &text) {
        if (std::string error = parsePrintRanks(text, instrumentation.print);
            !error.empty())
          throw CLI::ValidationError("--print-rank", error);
      },
      "Print only these ranks, such as 3 or 0,2");
  app.add_option_function<std::string>(
      "--print-microbatches",
      [&](const std::string &text) {
        if (std::string error =
                parsePrintMicrobatches(text, instrumentation.print);
            !error.empty())
          throw CLI::ValidationError("--print-microbatches", error);
      },
      "Print only these microbatches, such as 0..4");
}

int runPasses(const OptOptions &options, SourceManager &sources,
              DiagnosticEngine &diags, raw_ostream &out, raw_ostream &err) {
  PassRegistry registry = makePassRegistry();
  auto pipeline = parsePipeline(options.passes, registry, sources, diags);
  // The text of a large program is long, other than that of a schedule.
  sources.maxBytes = size_t(2) << 30;
  auto file = sources.open(options.input);
  if (!file)
    diags.report<diag::CannotRead>({}, options.input,
                                   llvm::toString(file.takeError()));
  auto program = file ? parseProgram(*file, sources, diags) : std::nullopt;
  if (!program || !pipeline)
    return Errors;

  Pipeline verifier;
  Instrumentation instrumentation = options.instrumentation;
  instrumentation.out = &err;
  if (options.verifyEach) {
    verifier = *parsePipeline("verify", registry, sources, diags);
    instrumentation.verifyEach = &verifier;
  }
  PassContext context(sources, diags);
  if (!runPipeline(*pipeline, *program, context, instrumentation))
    return Errors;
  if (options.noPrint)
    return Success;
  bool written =
      writeOutput(options.output, out, diags, [&](raw_ostream &stream) {
        printProgram(*program, stream, instrumentation.print);
        return true;
      });
  return written ? Success : Errors;
}

} // namespace

int ppcc::runOpt(llvm::ArrayRef<const char *> args,
                 llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> fs,
                 raw_ostream &out, raw_ostream &err) {
  OptOptions options;
  CLI::App app("Runs passes over the text of a program", "ppcc-opt");
  declare(app, options);
  if (std::optional<int> code = parseCommandLine(app, args, out, err))
    return *code;
  if (options.listPasses) {
    makePassRegistry().list(out);
    return Success;
  }
  options.instrumentation.print.sites = !options.noSites;

  SourceManager sources(std::move(fs));
  DiagnosticEngine diags(
      [&](const Diagnostic &diagnostic) { render(diagnostic, sources, err); });
  diags.maxErrors = options.maxErrors;
  return runPasses(options, sources, diags, out, err);
}
