// `ppcc decompile`: a schedule that people can read, for lists of actions.
#include "ppcc/Decompile/Decompile.h"
#include "Options.h"
#include "ppcc/Basic/Diagnostics/Emit.h"
#include "ppcc/Driver/Output.h"

#include "llvm/Support/Path.h"
#include "llvm/Support/VirtualFileSystem.h"

using namespace ppcc;

/// A name for a schedule, from that of the program or its file.
static std::string nameFor(StringRef text) {
  std::string name;
  for (char c : llvm::sys::path::stem(text))
    name += llvm::isAlnum(c) ? c : '_';
  return name.empty() || llvm::isDigit(name.front()) ? "schedule_" + name
                                                     : name;
}

/// Where the compute actions of a rank of one program are not those of another,
/// in words; nothing when all are.
static std::string difference(const Program &program, const Program &other) {
  if (program.ranksBegun() != other.ranksBegun())
    return "it has other ranks";
  for (RankId rank : program.ranks()) {
    std::vector<Action> sides[2];
    for (const Program *side : {&program, &other})
      for (ActionId row : side->rows(rank))
        if (side->kindOf(row).isCompute())
          sides[side == &other].push_back((*side)[row]);
    for (size_t i = 0; i != std::max(sides[0].size(), sides[1].size()); ++i) {
      auto textOf = [&](size_t side, const Program &of) {
        return i < sides[side].size() ? cell(of, sides[side][i]) : "the end";
      };
      std::string a = textOf(0, program), b = textOf(1, other);
      if (a != b || sides[0][i].joined != sides[1][i].joined)
        return fmt::format("rank {} would have {} in place of {}", rank.value,
                           b, a);
    }
  }
  return "";
}

int ppcc::runDecompile(ArrayRef<const char *> args, Session::Files fs,
                       raw_ostream &out, raw_ostream &err) {
  Options options;
  std::string name;
  OptionParser parser(
      "ppcc decompile",
      "Writes a schedule that runs the actions of a program in their order: "
      "phases, loops, one piece for ranks that differ in the counts of loops. "
      "Messages are left to the compiler. What is written was compiled and "
      "compared");
  parser.positional("INPUT", options.request.input,
                    "A list of actions, CSV or JSON, or a schedule", true);
  parser.value("--name", "NAME", name,
               "The name of the schedule; that of the "
               "program unless told");
  addOutput(parser, options.output);
  addCompileOptions(parser, options);
  addMaxErrors(parser, options.console.maxErrors);
  if (std::optional<int> code = parser.parse(args, out, err))
    return *code;
  auto session = consoleSession(std::move(fs), options.console, err);
  Compiled compiled = compile(options.request, *session);
  if (ExitCode code = exitCodeOf(compiled, err); code != Success)
    return code;
  const Program &program = compiled.program;
  auto refuse = [&](const std::string &why) {
    session->diags.report<diag::CannotDecompile>(Place(program.name()), why);
    session->flush();
    return Errors;
  };
  if (program.kinds().hasDeclared())
    return refuse(fmt::format("it has the declared action `{}`",
                              program.kinds().declaredRows().front().letters));
  std::string text =
      decompile(program, nameFor(name.empty() ? program.name() : name));
  // The statements leave microbatches to the compiler: ask it.
  llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> files(
      new llvm::vfs::InMemoryFileSystem);
  files->addFile("decompiled.pp", 0, llvm::MemoryBuffer::getMemBuffer(text));
  Session own(files);
  Request request;
  request.input = "decompiled.pp";
  request.until = Request::Until::Expanded;
  request.limits = options.request.limits;
  request.checksMemory = false;
  Compiled again = compile(request, own);
  std::string why = again ? difference(program, again.program) : own.text();
  if (!why.empty())
    return refuse(why);
  return writeOutput(options.output, out, *session,
                     [&](raw_ostream &s) { s << text; });
}
