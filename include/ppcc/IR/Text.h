// A program as text that people read and write, and that parses back.
#pragma once

#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/IR/Program.h"

namespace ppcc {

/// What of a program is printed.
struct PrintOptions {
  std::vector<RankId> ranks; ///< Only these; all when it is empty.
  /// Only actions of the microbatches from `first` up to, not including,
  /// `second`.
  std::optional<std::pair<uint32_t, uint32_t>> microbatches;
  bool sites = true; ///< Print where the actions come from.
};

/// Writes `program` as text. O(actions), streaming.
void printProgram(const Program &program, raw_ostream &out,
                  const PrintOptions &options = {});

/// A string of the text of programs.
std::string quotedString(StringRef text);
/// A word of it, which is a string where it must be.
std::string quotedIfNeeded(StringRef text);

/// Reads the program that file `file` of `sources` holds, or reports all that
/// is wrong with it. An action without a site gets the place of its cell.
/// O(bytes).
std::optional<Program> parseProgram(uint32_t file, const SourceManager &sources,
                                    DiagnosticEngine &diags);

} // namespace ppcc
