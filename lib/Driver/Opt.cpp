// ppcc-opt: a program as text in, passes, a program as text out.
#include "Options.h"
#include "PictureOptions.h"
#include "ppcc/Basic/Diagnostics/Files.h"
#include "ppcc/Compiler/PassRegistry.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Import/Families.h"
#include "ppcc/Support/Suggest.h"

using namespace ppcc;

namespace {

struct OptOptions {
  std::string input = "-", output = "-", emit = "ir";
  std::vector<sema::ParamValue> params;
  CostRequest costs;
  PassRequest passes;
  EmitOptions emitOptions;
  ConsoleOptions console;
  bool noPrint = false, noSites = false, listPasses = false;
};

/// Declares the options. The values land in `options`.
void declare(OptionParser &parser, OptOptions &options) {
  parser.positional("INPUT", options.input,
                    "The program as text; - is standard input");
  addOutput(parser, options.output);
  parser.each("-D", "NAME=VALUE",
              "Choose a program of those for all values of a parameter",
              [&](const std::string &text) {
                return parseDefinition(text, options.params.emplace_back());
              });
  parser.choice("--emit", "What to write", namesIn(emitters(), &Emitter::name),
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
  addPassOptions(parser, options.passes, options.listPasses);
  addMaxErrors(parser, options.console.maxErrors);
}

/// The program of a text, or that which the options choose among those of it.
std::optional<Program> read(const OptOptions &options, uint32_t file,
                            Session &session) {
  if (options.params.empty() && !isForAll(session.sources.text(file)))
    return parseProgram(file, session.sources, session.diags);
  ImportContext context{file, session.sources, session.diags, {}};
  for (const sema::ParamValue &param : options.params)
    context.options.params.emplace_back(param.name, param.value);
  return importFamilies(context);
}

int run(const OptOptions &options, Session &session, raw_ostream &out) {
  auto file = session.sources.open(options.input);
  if (!file)
    session.diags.report<diag::CannotRead>({}, options.input,
                                           llvm::toString(file.takeError()));
  auto program = file ? read(options, *file, session) : std::nullopt;
  if (!program || !applyCosts(options.costs, session, *program) ||
      !runPasses(options.passes, session, *program))
    return Errors;
  if (options.noPrint)
    return Success;
  EmitContext emitContext{session.diags, session.sources, options.emitOptions};
  emitContext.options.print = options.passes.instrumentation.print;
  emitContext.options.picture =
      fitted(options.emitOptions.picture,
             options.output == "-" ? out : llvm::nulls(), "auto");
  return writeOutput(options.output, out, session, [&](raw_ostream &s) {
    emitProgram(*findEmitter(options.emit), *program, s, emitContext);
  });
}

} // namespace

int ppcc::runOpt(ArrayRef<const char *> args, Session::Files fs,
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
  options.passes.instrumentation.print.sites = !options.noSites;
  options.passes.instrumentation.out = &err;
  auto session = consoleSession(std::move(fs), options.console, err);
  // The text of a large program is long, other than that of a schedule.
  session->sources.maxBytes = size_t(2) << 30;
  return run(options, *session, out);
}
