// The options `--cost` and `--costs`.
#pragma once

#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/Driver/CommandLine.h"
#include "ppcc/IR/Program.h"

namespace ppcc {

/// Costs that override those of the program.
struct CostOptions {
  std::vector<std::string> files; ///< Of --costs, in order.
  std::vector<std::string> costs; ///< Of --cost, `NAME=VALUE`, in order.
};

void addCostOptions(OptionParser &parser, CostOptions &options);

/// Puts the costs of the files, then those of the command line, into the
/// program. False after reports.
bool applyCosts(const CostOptions &options, SourceManager &sources,
                DiagnosticEngine &diags, Program &program);

} // namespace ppcc
