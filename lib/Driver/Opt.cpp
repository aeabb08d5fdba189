// ppcc-opt: a program as text in, passes, a program as text out.
#include "Options.h"
#include "ppcc/Compiler/CommPolicy.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Import/Importer.h"
#include "ppcc/Support/Suggest.h"

using namespace ppcc;

namespace {

struct OptOptions : Options {
  bool noSites = false, listPasses = false;

  bool printsAfter() const {
    const Instrumentation &watch = request.passes.instrumentation;
    return watch.printAfterAll || !watch.printAfter.empty();
  }
};

/// Declares what says how the program is written.
void declareOutputOptions(OptionParser &parser, OptOptions &options) {
  addOutput(parser, options.output);
  parser.choice("--emit", "The output format",
                namesIn(emitters(), &Emitter::name), options.emit);
  forFormats(parser, options, Emitter::TransportModel, [&] {
    parser.parsed("--transport", "The transport of reports and pictures",
                  [&](const std::string &name) -> std::string {
                    auto transport = findTransport(name);
                    if (transport)
                      options.emitOptions.transport = *transport;
                    return transport ? ""
                                     : "invalid value `" + name +
                                           "`; expected one of " +
                                           transportNameList().str() +
                                           didYouMean(name, transportNames());
                  });
  });
  addPictureOptions(parser, options);
}

/// Declares the options. The values land in `options`.
void declare(OptionParser &parser, OptOptions &options) {
  auto declareAll = [&] {
    parser.positional("INPUT", options.request.input,
                      "The program as text; - is standard input");
    addCostOptions(parser, options.request.costs);
    parser.onlyIf([&options] { return !options.check; },
                  "nothing is written with --no-print",
                  [&] { declareOutputOptions(parser, options); });
    parser.flag("--no-print", options.check,
                "Do not write the program at the end");
    parser.onlyIf(
        [&options] {
          return options.printsAfter() ||
                 (!options.check && options.emit == "ir");
        },
        "no program is printed as text",
        [&] {
          parser.flag("--no-sites", options.noSites,
                      "Print programs without source locations");
        });
    parser.group("For developers of ppcc",
                 [&] { addPassOptions(parser, options); });
    addErrorOptions(parser, options.console);
  };
  parser.onlyIf([&options] { return !options.listPasses; },
                "an option that lists and exits cannot be combined with others",
                declareAll);
  parser.group("For developers of ppcc", [&] {
    parser.flag("--list-passes", options.listPasses,
                "Print the passes with their options and exit");
  });
}

int run(const OptOptions &options, Session &session, raw_ostream &out) {
  if (!prepareOutputs(StringRef(options.output), out, session))
    return Errors;
  auto file = session.open(options.request.input);
  std::optional<Program> program;
  if (file) {
    ImportContext context{*file, session.sources, session.diags, {}};
    program = importProgram(*findImporter("ir"), context);
  }
  if (!program || !applyCosts(options.request.costs, session, *program) ||
      !runPasses(options.request.passes, session, *program))
    return Errors;
  if (options.check)
    return Success;
  EmitContext emitContext{session.diags, session.sources, options.emitOptions};
  emitContext.options.print = options.request.passes.instrumentation.print;
  emitContext.options.picture =
      fitted(options.emitOptions.picture,
             options.output == "-" ? out : llvm::nulls(), "auto");
  return writeOutput(options.output, out, session, [&](raw_ostream &s) {
    emitProgram(*findEmitter(options.emit), *program, s, emitContext);
  });
}

} // namespace

int ppcc::runOpt(const Invocation &call) {
  OptOptions options;
  options.request.input = "-";
  options.emit = "ir";
  OptionParser parser(call, "ppcc-opt",
                      "Runs passes over the text of a program");
  declare(parser, options);
  if (std::optional<int> code = parser.parse())
    return *code;
  if (options.listPasses) {
    makePassRegistry().list(call.out);
    return Success;
  }
  options.request.passes.instrumentation.print.sites = !options.noSites;
  options.request.passes.instrumentation.out = &call.err;
  auto session = consoleSession(call, options.console);
  // The text of a large program is long, other than that of a schedule.
  session->sources.maxBytes = size_t(2) << 30;
  return run(options, *session, call.out);
}
