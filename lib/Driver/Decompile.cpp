// `ppcc decompile`: a schedule that people can read, for lists of actions.
#include "Options.h"
#include "ppcc/Basic/Diagnostics/Emit.h"
#include "ppcc/Decompile/ScheduleText.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Parse/Parser.h"

#include "llvm/Support/Path.h"
#include "llvm/Support/VirtualFileSystem.h"

using namespace ppcc;

/// A name for a schedule, from that of the program or its file.
static std::string nameFor(StringRef text) {
  std::string name;
  for (char c : llvm::sys::path::stem(text))
    name += llvm::isAlnum(c) ? c : '_';
  bool isWord = !name.empty() && !llvm::isDigit(name.front()) &&
                !llvm::is_contained(keywords(), name);
  return isWord ? name : "schedule_" + name;
}

/// Where the compute actions of a rank of one program are not those of another,
/// in words; nothing when all are.
static std::string difference(const Program &program, const Program &other) {
  if (program.ranksBegun() != other.ranksBegun())
    return "it has other ranks";
  for (PipeId pipe : program.pipeIds())
    if (program.pipe(pipe).tensors != other.pipe(pipe).tensors)
      return fmt::format("the edges of pipe `{}` would have other tensors",
                         program.pipe(pipe).name);
  for (RankId rank : program.ranks()) {
    auto computed = [&](const Program &of) {
      std::vector<std::pair<std::string, bool>> cells;
      for (ActionId row : of.rows(rank))
        if (of.kindOf(row).isCompute())
          cells.emplace_back(cell(of, of[row]), of[row].joined);
      cells.emplace_back("the end", false);
      return cells;
    };
    auto wanted = computed(program), found = computed(other);
    auto [a, b] = std::ranges::mismatch(wanted, found);
    if (a != wanted.end())
      return fmt::format("rank {} would have {} in place of {}", rank.value,
                         b->first, a->first);
  }
  return "";
}

int ppcc::runDecompile(const Invocation &call) {
  Options options;
  options.hasMessages = false;
  options.request.passes.passes = "verify"; // What is computed.
  std::string name;
  OptionParser parser(call, "ppcc decompile");
  addInput(parser, options, "A list of actions, CSV or JSON, or a schedule");
  parser.value("--name", "NAME", name,
               "The name of the schedule; that of the program by default");
  addOutput(parser, options.output);
  addCompileOptions(parser, options);
  addErrorOptions(parser, options.console);
  if (std::optional<int> code = parser.parse())
    return *code;
  auto session = consoleSession(call, options.console);
  if (!prepareOutputs(StringRef(options.output), call.out, *session))
    return Errors;
  Compiled compiled = compile(options.request, *session);
  if (ExitCode code = exitCodeOf(compiled, call.err); code != Success)
    return code;
  const Program &program = compiled.program;
  auto refuse = [&](const std::string &why) {
    session->diags.report<diag::CannotDecompile>(Location(program.name()), why);
    session->flush();
    return Errors;
  };
  if (program.kinds().hasDeclared())
    return refuse(fmt::format("it has the declared action `{}`",
                              program.kinds().declaredRows().front().mnemonic));
  if (!program.nodes().names.empty())
    return refuse("it has nodes, which a model declares");
  if (std::string what = schedtext::inexpressibleCost(program); !what.empty())
    return refuse("a schedule cannot express " + what);
  std::string text =
      decompile(program, nameFor(name.empty() ? program.name() : name));
  // The statements leave microbatches to the compiler: ask it.
  llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> files(
      new llvm::vfs::InMemoryFileSystem);
  files->addFile("decompiled.pp", 0, llvm::MemoryBuffer::getMemBuffer(text));
  Session own(files);
  Request request;
  request.input = "decompiled.pp";
  request.until = Request::StopAfter::Expanded;
  request.limits = options.request.limits;
  request.checksMemory = false;
  Compiled again = compile(request, own);
  std::string why;
  if (again)
    why = difference(program, again.program);
  else
    why = llvm::find_if(own.found, [](const Diagnostic &one) {
            return one.info().severity == Severity::Error;
          })->message;
  if (!why.empty())
    return refuse(why);
  return writeOutput(options.output, call.out, *session,
                     [&](raw_ostream &s) { s << text; });
}
