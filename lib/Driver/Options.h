// The command line of ppcc, as values.
#pragma once

#include "CostOptions.h"
#include "PassCommandLine.h"
#include "ppcc/Emit/Emitter.h"
#include "ppcc/Import/Importer.h"
#include "ppcc/Sema/Instance.h"

#include <optional>

namespace ppcc {

/// What ppcc is asked to do.
struct Options : PassCommandLine {
  std::string input, output = "-", emit = "json", schedule, color = "auto";
  std::string depfile; ///< Empty for none.
  std::optional<std::string> commOrder, fusion;
  std::vector<std::string> transports; ///< Those asked for; may be empty.
  std::optional<uint32_t> prefetch;
  std::optional<std::string> preconnect; ///< `auto`, `on` or `off`.
  std::vector<sema::ParamValue> params;
  std::vector<std::string> rules; ///< To follow, as behind `with`.
  std::string ruleFile = "std.pp";
  bool sharesParams = false; ///< Some may be for other schedules.
  std::string layout; ///< Stands for that of the schedule; empty for none.
  sema::Limits limits;
  CostOptions costs;
  EmitOptions emitOptions;
  std::string from; ///< The format of a program; empty to tell by the file.
  ImportOptions importOptions;
  std::optional<size_t> maxSourceBytes;
  bool check = false, timeline = false;
  bool jsonDiagnostics = false; ///< Not for people.
  bool rolled = false;          ///< Write loops for what repeats itself.
  bool listSchedules = false, listParams = false, listDiagnostics = false;
};

/// Adds the options that say how a schedule or program is compiled.
void addCompileOptions(OptionParser &parser, Options &options);

/// Takes `NAME=VALUE`; gives what is wrong with the text, or nothing.
std::string parseDefinition(llvm::StringRef text, sema::ParamValue &value);

/// Reads the command line. Gives the exit code when there is nothing more to
/// do: help or the version was asked for, or the usage was wrong and has been
/// explained.
std::optional<int> parseOptions(llvm::ArrayRef<const char *> args,
                                Options &options, llvm::raw_ostream &out,
                                llvm::raw_ostream &err);

} // namespace ppcc
