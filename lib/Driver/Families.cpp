#include "Families.h"

#include "ppcc/Driver/Output.h"
#include "ppcc/Prove/Families.h"
#include "ppcc/Prove/Instances.h"

using namespace ppcc;
using llvm::raw_ostream;

/// The program for all values of a parameter.
static int writeForAll(const Options &options, Session &session,
                       raw_ostream &out, raw_ostream &err) {
  std::string misuse;
  auto proof = prove({options.request, options.free, false, false, true},
                     session, misuse);
  if (!misuse.empty()) {
    err << "error: " << misuse << '\n';
    return Usage;
  }
  return proof && writeOutput(
                      options.output, out, session.sources, session.diags,
                      [&](raw_ostream &s) {
                        return writeFamilies(*proof, options.free, session, s);
                      })
             ? Success
             : Errors;
}

Compiled ppcc::compileAny(const Options &options, Session &session) {
  if (!options.laysOut && !options.request.rolled)
    if (auto family = instancesFor(options.request, session))
      if (auto program =
              family->at(family->n, options.request.limits.maxActions)) {
        Compiled compiled = std::move(family->sample);
        compiled.program = std::move(*program);
        return compiled;
      }
  return compile(options.request, session);
}

std::optional<int> ppcc::writeByFamilies(const Options &options,
                                         Session &session, raw_ostream &out,
                                         raw_ostream &err) {
  if (!options.free.empty())
    return writeForAll(options, session, out, err);
  if (options.laysOut || !options.request.rolled || options.check ||
      options.timeline || !options.depfile.empty())
    return std::nullopt;
  auto family = instancesFor(options.request, session);
  if (!family)
    return std::nullopt;
  auto text = family->text(
      [&](const Program &program, raw_ostream &to) {
        Compiled one;
        one.comm = family->sample.comm;
        one.program = program;
        return emit(one, *findEmitter(options.emit), to, session,
                    options.emitOptions);
      },
      options.request.limits.maxActions);
  if (!text)
    return std::nullopt;
  bool written = writeOutput(options.output, out, session.sources,
                             session.diags, [&](raw_ostream &to) {
                               to << *text;
                               return true;
                             });
  return written ? Success : Errors;
}
