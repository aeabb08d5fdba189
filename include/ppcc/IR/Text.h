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

// ---- Programs for all values of a parameter, docs/every-m.md ----

/// c + n N + j J, where N and J are variables.
struct AffineTerm {
  int64_t c = 0, n = 0, j = 0;
};

/// Programs for the values `values.c + values.n N`, N from 0 on.
struct FamilyHeader {
  AffineTerm values;
  std::optional<uint64_t> count; ///< Of values; nothing for no end.
  std::string verdict, reason;
  std::optional<uint32_t> body; ///< Where its items begin, if it has any.
};

/// The text of programs for all values of the parameter `free`.
struct FamilyHeaders {
  std::string free;
  std::vector<std::string> transports;
  std::vector<FamilyHeader> families; ///< Not none.
};

/// Whether families follow the head of a program, as far as that can be seen.
bool hasFamilies(uint32_t file, const SourceManager &sources);
/// What the text says of its families, or reports of what is wrong with it.
std::optional<FamilyHeaders> parseFamilies(uint32_t file,
                                           const SourceManager &sources,
                                           DiagnosticEngine &diags);
/// The program of a family that has items, where N is `n`. Loops have one
/// iteration, in which J is `j`.
std::optional<Program> parseFamily(const FamilyHeader &family, int64_t n,
                                   int64_t j, uint32_t file,
                                   const SourceManager &sources,
                                   DiagnosticEngine &diags);

} // namespace ppcc
