// The options that say which passes run.
#include "PassCommandLine.h"

#include "ppcc/Driver/DumpFilter.h"
#include "ppcc/Driver/PassRegistry.h"
#include "ppcc/Pass/PipelineParser.h"
#include "ppcc/Support/Suggest.h"

using namespace ppcc;
using llvm::raw_ostream;
using llvm::StringRef;

void ppcc::addPassOptions(OptionParser &parser, PassCommandLine &options) {
  Instrumentation &watch = options.instrumentation;
  parser.value("--passes", "PIPELINE", options.passes,
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
  parser.flag("--list-passes", options.listPasses,
              "Print the passes with their options and exit");
  parser.flag("--verify-each", options.verifyEach,
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
  addMaxErrors(parser, options.maxErrors);
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
