// ppcc-opt: a program as text in, passes, a program as text out.
#include "CostOptions.h"
#include "PassCommandLine.h"
#include "PictureOptions.h"
#include "ppcc/Driver/Driver.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Driver/PassRegistry.h"
#include "ppcc/IR/Transport.h"
#include "ppcc/Support/Suggest.h"

using namespace ppcc;
using llvm::raw_ostream;

namespace {

struct OptOptions : PassCommandLine {
  std::string input = "-", output = "-", emit = "ir";
  CostOptions costs;
  EmitOptions emitOptions;
  bool noPrint = false, noSites = false;
};

/// Declares the options. The values land in `options`.
void declare(OptionParser &parser, OptOptions &options) {
  parser.positional("INPUT", options.input,
                    "The program as text; - is standard input");
  addOutput(parser, options.output);
  std::vector<std::string> formats;
  for (const Emitter &emitter : emitters())
    formats.push_back(emitter.name.str());
  parser.choice("--emit", "What to write", formats,
                [&](const std::string &format) { options.emit = format; });
  parser.parsed("--transport", "The transport of promela and reports",
                [&](const std::string &name) -> std::string {
                  auto transport = findTransport(name);
                  if (transport)
                    options.emitOptions.transport = *transport;
                  return transport ? ""
                                   : "`" + name + "` is none of " +
                                         transportNameList().str() +
                                         didYouMean(name, transportNames());
                });
  addCostOptions(parser, options.costs);
  addPictureOptions(parser, options.emitOptions.picture);
  parser.flag("--no-print", options.noPrint,
              "Do not write the program at the end");
  parser.flag("--no-sites", options.noSites,
              "Print programs without the places that actions come from");
  addPassOptions(parser, options);
}

int run(const OptOptions &options, SourceManager &sources,
        DiagnosticEngine &diags, raw_ostream &out, raw_ostream &err) {
  auto file = sources.open(options.input);
  if (!file)
    diags.report<diag::CannotRead>({}, options.input,
                                   llvm::toString(file.takeError()));
  auto program = file ? parseProgram(*file, sources, diags) : std::nullopt;
  if (!program || !applyCosts(options.costs, sources, diags, *program) ||
      !runPasses(options.passes, options, *program, sources, diags, err))
    return Errors;
  if (options.noPrint)
    return Success;
  EmitContext emitContext{diags, sources, options.emitOptions};
  emitContext.options.print = options.instrumentation.print;
  emitContext.options.picture =
      fitted(options.emitOptions.picture,
             options.output == "-" ? out : llvm::nulls(), "auto");
  bool written =
      writeOutput(options.output, out, sources, diags, [&](raw_ostream &s) {
        return emitProgram(*findEmitter(options.emit), *program, s,
                           emitContext);
      });
  return written ? Success : Errors;
}

} // namespace

int ppcc::runOpt(llvm::ArrayRef<const char *> args,
                 llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> fs,
                 raw_ostream &out, raw_ostream &err) {
  OptOptions options;
  OptionParser parser("ppcc-opt", "Runs passes over the text of a program");
  declare(parser, options);
  if (std::optional<int> code = parser.parse(args, out, err))
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
  // The text of a large program is long, other than that of a schedule.
  sources.maxBytes = size_t(2) << 30;
  return run(options, sources, diags, out, err);
}
