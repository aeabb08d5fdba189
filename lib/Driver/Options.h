// The command line of ppcc, as values.
#pragma once

#include "Console.h"
#include "ppcc/Compiler/Compiler.h"
#include "ppcc/Driver/CommandLine.h"
#include "ppcc/Driver/Driver.h"

namespace ppcc {

/// What ppcc is asked to do.
struct Options {
  std::string command = "ppcc"; ///< As it is called.
  Request request = {};
  std::string output = "-", emit = "json";
  std::string free = {};    ///< The parameter that stays open; empty for none.
  std::string depfile = {}; ///< Empty for none.
  EmitOptions emitOptions = {};
  ConsoleOptions console = {};
  bool laysOut = false; ///< Even where many microbatches are a known family's.
  bool check = false, timeline = false, watch = false, listParams = false;
  bool listSchedules = false, listPasses = false, listDiagnostics = false;
};

/// Adds `--diagnostics-format`.
void addDiagnosticsFormat(OptionParser &parser, ConsoleOptions &console);
/// Adds the options that say how a schedule is compiled. Where `byData` is
/// given, `data` is a transport that sets it.
void addScheduleOptions(OptionParser &parser, Options &options,
                        bool *byData = nullptr);
/// The same for a schedule or program.
void addCompileOptions(OptionParser &parser, Options &options);
/// Adds `--cost` and `--costs`.
void addCostOptions(OptionParser &parser, CostRequest &request);
/// Adds the options of pictures.
void addPictureOptions(OptionParser &parser, PictureOptions &options);
/// Adds the options that say which passes run, and `--list-passes`.
void addPassOptions(OptionParser &parser, PassRequest &request,
                    bool &listPasses);

/// Takes `NAME=VALUE`; gives what is wrong with the text, or nothing.
std::string parseDefinition(StringRef text, sema::ParamValue &value);

/// Reads the command line. Gives the exit code when there is nothing more to
/// do: help or the version was asked for, or the usage was wrong and has been
/// explained.
std::optional<int> parseOptions(const Invocation &call, Options &options);

#define COMMAND(name, function, summary) ToolMain function;
#include "Commands.def"

} // namespace ppcc
