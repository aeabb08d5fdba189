// `ppcc new`: a schedule to begin with, and its test.
#include "Options.h"
#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Basic/Diagnostics/Files.h"
#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Editor/Editor.h"
#include "ppcc/Parse/Parser.h"

#include "llvm/Support/FileSystem.h"

using namespace ppcc;

// In all of them, @ is the name.
static constexpr StringRef schedule =
    R"(// @: one forward, one backward. Say here what your schedule does.
//
//   ppcc @.pp --timeline -o @.json   draws it, and writes its program
//   ppcc report @.pp -D P=8 -D M=32  what it takes, for other sizes
schedule @(P: int >= 1 = 4, M: int >= 1 = 8) {
  ranks P;          // devices that work beside each other
  microbatches M;   // parts of a batch, which pass through all stages
  placement linear; // stage s is on rank s

  // What each rank runs, in this order; ppcc puts in the messages. F is a
  // forward, B a backward, each of the next microbatch.
  on rank r {
    // Rank r runs ahead of the ranks after it, so that they have work.
    let w = min(P - 1 - r, M);
    phase warmup   { repeat w     { F; } }
    phase steady   { repeat M - w { F; B; } }
    phase cooldown { repeat w     { B; } }
  }
}
)";

static constexpr StringRef test =
    R"(What @ promises. `lit -v .` runs this; docs/testing-schedules.md of ppcc says more.

It works for the smallest sizes and for large ones, and cannot hang where sends wait for receives.
RUN: ppcc check %S/@.pp -D P=1 -D M=1
RUN: ppcc check %S/@.pp -D P=16 -D M=64 --transport=rendezvous

The order of every rank, without messages.
RUN: ppcc %S/@.pp -D P=2 -D M=3 --comm-order=none --emit=actions | FileCheck %s --check-prefix=ORDER
ORDER:      rank 0: 0F0 0F1 0B0 0F2 0B1 0B2
ORDER-NEXT: rank 1: 1F0 1B0 1F1 1B1 1F2 1B2

What it takes, when a backward takes twice as long as a forward.
RUN: ppcc report %S/@.pp -D P=4 -D M=8 --cost F=1 --cost B=2 | FileCheck %s --check-prefix=COSTS
COSTS: makespan     33
)";

/// Of one that begins as a schedule of the library.
static constexpr StringRef libraryTest =
    R"(What @ promises. `lit -v .` runs this; docs/testing-schedules.md of ppcc says more.

It is right, and cannot hang on its transport.
RUN: ppcc check %S/@.pp

What it takes.
RUN: ppcc report %S/@.pp | FileCheck %s --check-prefix=COSTS
COSTS: makespan     )";

static constexpr StringRef litConfig =
    R"(# How lit runs the tests of this folder.
import os
import shutil
import sys

ppcc = shutil.which("ppcc") or lit_config.fatal("ppcc is not on PATH")
bin_dir = os.path.dirname(os.path.realpath(ppcc))
sys.path.append(os.path.join(bin_dir, "..", "share", "ppcc", "lit"))
import ppcc_lit

ppcc_lit.configure(config, lit_config, bin_dir)
config.name = "schedules"
config.test_exec_root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "build", "lit")
config.excludes += ["build"]
config.suffixes = [".test"]
)";

/// A schedule of the library under another name, and its test; nothing when
/// there is none, or after a report.
static std::optional<std::pair<std::string, std::string>>
startFrom(const std::string &name, Session &session) {
  const LibraryFile *found = findLibraryFile(name);
  if (!found || !found->text.contains("\nschedule "))
    return std::nullopt;
  std::string own = found->names().front(), text = found->text.str();
  size_t at = text.find("\nschedule " + own + "(");
  text.replace(at, own.size() + 10, "\nschedule " + name);
  Request request;
  request.input = name + ".pp";
  session.sources.add(request.input,
                      llvm::MemoryBuffer::getMemBufferCopy(text));
  Compiled compiled = compile(request, session);
  const TimedRun *timed =
      compiled ? Analyses(compiled.program)
                     .timedRun(compiled.comm.transports.front(), session.diags)
               : nullptr;
  if (!timed)
    return std::nullopt;
  return std::pair(
      text, libraryTest.str() +
                compiled.program.units().time(timed->simulation.makespan) +
                "\n");
}

int ppcc::runNew(const Invocation &call) {
  std::string name;
  ConsoleOptions console;
  OptionParser parser(call, "ppcc new");
  parser.positional("NAME", name, "Of the schedule", /*isRequired=*/true);
  if (std::optional<int> code = parser.parse())
    return *code;
  StringRef broken = name.empty()             ? "it is empty"
                     : llvm::isDigit(name[0]) ? "it begins with a digit"
                     : !llvm::all_of(name, editor::isWordCharacter)
                         ? "only letters, digits and `_` are allowed"
                     : llvm::is_contained(keywords(), name)
                         ? "it is a word of the language"
                         : "";
  if (!broken.empty())
    return parser.usageError(
        fmt::format("`{}` cannot be the name of a schedule: {}", name, broken));
  auto session = consoleSession(call, console);
  std::vector<std::pair<std::string, StringRef>> files = {
      {name + ".pp", schedule}, {name + ".test", test}};
  for (const auto &[path, text] : files)
    if (llvm::sys::fs::exists(path))
      session->diags.report<diag::FileExists>({}, path);
  if (session->diags.hasErrors())
    return Errors;
  auto known = startFrom(name, *session);
  if (session->diags.hasErrors())
    return Errors;
  if (known)
    std::tie(files[0].second, files[1].second) = *known;
  if (!llvm::sys::fs::exists("lit.cfg.py"))
    files.emplace_back("lit.cfg.py", litConfig);
  std::vector<std::function<void(raw_ostream &)>> writers;
  for (const auto &[path, text] : files)
    writers.push_back([&name, text = text](raw_ostream &s) {
      for (char c : text)
        (c == '@' ? s << name : s << c);
    });
  std::vector<OutputFile> outputs;
  for (const auto &[file, writer] : llvm::zip(files, writers))
    outputs.push_back({file.first, writer});
  ExitCode code = writeOutputs(outputs, call.out, *session);
  if (code == Success)
    for (const auto &[path, text] : files)
      call.out << "wrote " << path << '\n';
  return code;
}
