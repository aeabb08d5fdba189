// ppcc-opt: a program as text in, passes, a program as text out.
#include "ppcc/Driver/Opt.h"

#include "CostOptions.h"
#include "PictureOptions.h"
#include "ppcc/Driver/CommandLine.h"
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
void declare(CLI::App &app, OptOptions &options) {
  app.add_option("INPUT", options.input,
                 "The program as text; - is standard input");
  addOutput(app, options.output);
  std::vector<std::string> formats;
  for (const Emitter &emitter : emitters())
    formats.push_back(emitter.name.str());
  addChoice(app, "--emit", "What to write", formats,
            [&](const std::string &format) { options.emit = format; });
  addParsed(app, "--transport", "The transport of promela and reports",
            [&](const std::string &name) -> std::string {
              auto transport = findTransport(name);
              if (transport)
                options.emitOptions.transport = *transport;
              return transport ? ""
                               : "`" + name + "` is none of " +
                                     transportNameList().str() +
                                     didYouMean(name, transportNames());
            });
  addCostOptions(app, options.costs);
  addPictureOptions(app, options.emitOptions.picture);
  app.add_flag("--no-print", options.noPrint,
               "Do not write the program at the end");
  app.add_flag("--no-sites", options.noSites,
               "Print programs without the places that actions come from");
  addPassOptions(app, options);
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
      writeOutput(options.output, out, diags, [&](raw_ostream &stream) {
        return emitProgram(*findEmitter(options.emit), *program, stream,
                           emitContext);
      });
  return written ? Success : Errors;
}

} // namespace

int ppcc::runOpt(llvm::ArrayRef<const char *> args,
                 llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> fs,
                 raw_ostream &out, raw_ostream &err) {
  OptOptions options;
  CLI::App app("Runs passes over the text of a program", "ppcc-opt");
  addHelp(app);
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
  // The text of a large program is long, other than that of a schedule.
  sources.maxBytes = size_t(2) << 30;
  return run(options, sources, diags, out, err);
}
