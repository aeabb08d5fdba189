#include "Families.h"

#include "ppcc/Driver/Output.h"
#include "ppcc/Import/Importer.h"
#include "ppcc/Prove/Prove.h"

using namespace ppcc;

/// The same as C++.
static void writeCpp(const proof::ParametricProgram &families,
                     const BuildOptions &options, raw_ostream &out) {
  std::string text, symbol = options.emitOptions.cppSymbol;
  llvm::raw_string_ostream stream(text);
  emitFamilies(families, stream);
  if (symbol.empty())
    symbol = cppSymbol(families.schedule);
  out << "// The programs of a pipeline schedule, for all values of a "
         "parameter. Written by ppcc.\n#include \"ppcc/Runtime/Json.h\"\n\n"
         "static ppcc::rt::LoadedProgram instance(const void *, int64_t value) "
         "{\n  static const auto families = ppcc::rt::readJson(std::string(\n";
  // Literals have a limit, and what stands beside another is one with it.
  for (StringRef rest = text; !rest.empty();
       rest = rest.drop_front(std::min<size_t>(rest.size(), 60)))
    out << "      " << cppLiteral(rest.take_front(60)) << '\n';
  out << "  ));\n  return families.at(value);\n}\n\nextern \"C\" {\n"
         "extern const ppcc::rt::Program "
      << symbol << ";\n}\nconst ppcc::rt::Program " << symbol
      << " = ppcc::rt::Program::parametric(" << cppLiteral(families.schedule)
      << ", instance);\n";
}

/// Those that the input holds, or of the schedule that it is.
static std::optional<proof::ParametricProgram>
familiesFor(const BuildOptions &options, Session &session,
            std::string &usageError) {
  auto input = openInput(options.request, session);
  if (!input)
    return std::nullopt;
  if (input->format && isFamilyFile(input->source, session.sources)) {
    ImportContext context{input->source, session.sources, session.diags, {}};
    auto families = readFamilies(context);
    if (families && families->free != options.free)
      usageError = "--for " + options.free +
                   ": the input holds programs for all " +
                   printable(families->free);
    else if (!options.request.params.empty())
      usageError = "-D chooses one of the programs of the input, --for all";
    return usageError.empty() ? families : std::nullopt;
  }
  auto proof = prove({options.request, options.free, false, false, true},
                     session, usageError);
  if (!proof)
    return std::nullopt;
  return familiesOf(*proof, options.free, session);
}

int ppcc::writeForAll(const BuildOptions &options, Session &session,
                      const Invocation &call) {
  std::string usageError;
  auto families = familiesFor(options, session, usageError);
  if (!usageError.empty()) {
    call.err << "error: " << usageError << '\n';
    return Usage;
  }
  if (!families)
    return Errors;
  return writeOutput(options.output, call.out, session, [&](raw_ostream &s) {
    if (options.emit == "cpp")
      writeCpp(*families, options, s);
    else
      emitFamilies(*families, s);
  });
}

std::optional<Compiled> ppcc::compileByFamily(const Request &request,
                                              Session &session) {
  Request own = request;
  own.byFamily = nullptr;
  auto family = familyFor(own, session);
  if (!family)
    return std::nullopt;
  uint64_t maxActions = request.limits.maxActions;
  if (request.rolled)
    return family->roll(maxActions) ? std::optional(std::move(family->sample))
                                    : std::nullopt;
  auto program = family->at(family->n, maxActions);
  if (!program)
    return std::nullopt;
  family->sample.program = std::move(*program);
  return std::move(family->sample);
}
