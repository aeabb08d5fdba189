// What the command lines of the tools share: reading them, and the options of
// passes.
#pragma once

#include "ppcc/Emit/Emitter.h"
#include "ppcc/Pass/PassManager.h"

#include <CLI/CLI.hpp>

#include <optional>

namespace ppcc {

enum ExitCode { Success = 0, Errors = 1, Usage = 2 };

/// Adds `--help`, in the form that all tools have.
void addHelp(CLI::App &app);
/// Adds `--version`, which says the name of the app.
void addVersion(CLI::App &app);
/// Adds `--output`, whose default is standard output.
void addOutput(CLI::App &app, std::string &output);
/// Adds `--max-errors`.
void addMaxErrors(CLI::App &app, size_t &maxErrors);

/// Lets an option be given several times, each time with one value.
void takeEach(CLI::Option *option);

/// Adds an option whose value must be one of some names; a misspelt one gets a
/// suggestion.
void addChoice(CLI::App &app, std::string name, std::string summary,
               std::vector<std::string> choices,
               std::function<void(const std::string &)> set);

/// Adds an option that is read by a function which gives what is wrong with the
/// text, or nothing.
void addParsed(CLI::App &app, std::string name, std::string summary,
               std::function<std::string(const std::string &)> parse);

/// Runs `app` on `args`: the exit code when that already ends the run. Unknown
/// options get a suggestion.
std::optional<int> parseCommandLine(CLI::App &app,
                                    llvm::ArrayRef<const char *> args,
                                    llvm::raw_ostream &out,
                                    llvm::raw_ostream &err);

/// Says what is wrong with a command line, and gives the exit code.
int reportUsage(const CLI::App &app, llvm::StringRef text,
                llvm::raw_ostream &err);

/// Which passes run, and what is watched meanwhile.
struct PassCommandLine {
  std::string passes; ///< The pipeline as text.
  Instrumentation instrumentation;
  bool verifyEach = false, listPasses = false;
  size_t maxErrors = 100;
};

/// Adds the options that fill a PassCommandLine.
void addPassOptions(CLI::App &app, PassCommandLine &options);

/// Runs the pipeline `text` on `program` as `options` wish. False after errors,
/// which are reported.
bool runPasses(llvm::StringRef text, const PassCommandLine &options,
               Program &program, SourceManager &sources,
               DiagnosticEngine &diags, llvm::raw_ostream &err);

} // namespace ppcc
