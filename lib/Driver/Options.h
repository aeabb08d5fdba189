// The command line of ppcc, as values.
#pragma once

#include "ppcc/Emit/Emitter.h"
#include "ppcc/Pass/PassManager.h"
#include "ppcc/Sema/Instance.h"

#include <CLI/CLI.hpp>

#include <optional>

namespace ppcc {

enum ExitCode { Success = 0, Errors = 1, Usage = 2 };

/// What ppcc is asked to do.
struct Options {
  std::string input, output = "-", emit = "json", schedule, passes,
                     color = "auto";
  std::optional<std::string> commOrder;
  std::vector<sema::ParamValue> params;
  sema::Limits limits;
  EmitOptions emitOptions;
  Instrumentation instrumentation;
  size_t maxErrors = 100, maxSourceBytes = size_t(1) << 20;
  bool check = false, verifyEach = false;
  bool listSchedules = false, listParams = false, listPasses = false,
       listDiagnostics = false;
};

/// Reads the command line. Gives the exit code when there is nothing more to
/// do: help or the version was asked for, or the usage was wrong and has been
/// explained.
std::optional<int> parseOptions(llvm::ArrayRef<const char *> args,
                                Options &options, llvm::raw_ostream &out,
                                llvm::raw_ostream &err);

/// Runs `app` on `args`: the exit code when that already ends the run. Unknown
/// options get a suggestion.
std::optional<int> parseCommandLine(CLI::App &app,
                                    llvm::ArrayRef<const char *> args,
                                    llvm::raw_ostream &out,
                                    llvm::raw_ostream &err);

} // namespace ppcc
