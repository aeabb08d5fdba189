// The command line of ppcc, as values.
#pragma once

#include "Commands.h"
#include "Console.h"
#include "ppcc/Analysis/Report/Report.h"
#include "ppcc/Compiler/Compiler.h"

namespace ppcc {

/// What commands that compile have in common.
struct Options {
  Request request = {};
  std::string output = "-", emit = "json";
  bool hasEmitOption = true; ///< `emit` is an option.
  bool hasMessages = true;   ///< So are those about messages.
  EmitOptions emitOptions = {};
  ConsoleOptions console = {};
  bool check = false, timeline = false, listParams = false;
};

/// What `ppcc`, `ppcc build`, `check` and `report` take.
struct BuildOptions : Options {
  std::string command = "ppcc";         ///< As it is called.
  std::vector<std::string> inputs = {}; ///< Those of `check`, which takes more.
  std::string free = {};    ///< The parameter that stays open; empty for none.
  std::string depfile = {}; ///< Empty for none.
  bool noFamilies =
      false; ///< Even where many microbatches are a known family's.
  bool watch = false, synthesizes = false;
  bool asJson = false; ///< What `check` says.
  bool listSchedules = false, listPasses = false, listDiagnostics = false;

  bool lists() const { return listSchedules || listPasses || listDiagnostics; }
};

/// Adds `--max-errors` and `--diagnostics-format`.
void addErrorOptions(OptionParser &parser, ConsoleOptions &console);
/// Adds the options that say how a schedule is compiled. Where `byData` is
/// given, `data` is a transport that sets it.
void addScheduleOptions(OptionParser &parser, Options &options,
                        bool *dataOnly = nullptr);
/// The same for a schedule or program.
void addCompileOptions(OptionParser &parser, Options &options);
/// Declares what is for programs, of which there may be none.
void forPrograms(OptionParser &parser, const Options &options,
                 function_ref<void()> declare);
/// Declares what is for formats that read it (Emitter::Reads): not at all where
/// none can be written, and as wrong usage beside the others.
void forFormats(OptionParser &parser, const Options &options, unsigned reads,
                function_ref<void()> declare);
/// Adds the options of pictures, as far as a format that can be written reads
/// them.
void addPictureOptions(OptionParser &parser, Options &options);
/// Adds the options that say which passes run.
void addPassOptions(OptionParser &parser, Options &options);

/// Takes `FILE` or `FILE:NAME`.
void takeInput(Request &request, StringRef text);
/// Adds the input, `FILE` or `FILE:NAME`.
void addInput(OptionParser &parser, Options &options, StringRef summary,
              bool isRequired = true);
/// Takes `NAME=VALUE`; gives what is wrong with the text, or nothing.
std::string parseDefinition(StringRef text, sema::ParamValue &value);
/// What `-D` may call the parameters of what was compiled.
std::set<std::string> parameterNames(const Compiled &compiled,
                                     const Request &request, Session &session);
/// Reports a parameter that was given but that none of several schedules has.
ExitCode checkParameter(StringRef given, const std::set<std::string> &known,
                        Session &session);

/// Looks for a better order of what was compiled, with actions of its kinds.
SynthesizedOrder synthesizeFor(const Request &request, const Program &program,
                               const Report &report, const Session &session);
/// Adds `--synthesize`, which asks for that.
void addSynthesize(OptionParser &parser, bool &synthesizes);

/// Declares the options of a command that compiles one input.
using Declare = void(OptionParser &parser, BuildOptions &options);
Declare declareBuild, declareCheck, declareReport;

/// Reads the command line. Gives the exit code when there is nothing more to
/// do: help or the version was asked for, or the usage was wrong and has been
/// explained.
std::optional<int> parseOptions(const Invocation &call, BuildOptions &options,
                                Declare *declare = declareBuild);

} // namespace ppcc
