// The programs: command lines in, exit codes out.
#pragma once

#include "ppcc/Compiler/Compiler.h"
#include "ppcc/Driver/CommandLine.h"

namespace ppcc {

/// What runs a program. Returns the exit code: 0, 1 for errors in the input, 2
/// for wrong usage.
using ToolMain = int(const Invocation &call);

ToolMain runCompiler; ///< ppcc: a schedule in, a verified program out.

/// What a command line of `ppcc` would write, instead of writing it.
struct CompiledCommand {
  int code; ///< As of runCompiler; 0 where there is a program.
  std::unique_ptr<Session> session;
  Compiled compiled;
};
CompiledCommand compileCommand(const Invocation &call);
/// Writes the program as JSON, or only its head, over no rows. False after
/// reports to the session.
bool emitJsonOf(const CompiledCommand &command, bool hasRows, raw_ostream &out);

/// The whole of main: runs `tool` on the file system and the standard streams.
/// Too little memory, and a standard output that takes no more, are reported.
int runTool(int argc, const char *const *argv, ToolMain *tool);

} // namespace ppcc
