// Reads programs for all values of a parameter from text, which
// docs/every-m.md describes.
#pragma once

#include "ppcc/Import/Importer.h"
#include "ppcc/Proof/Certificate.h"

namespace ppcc {

/// A range of values and the text of its programs: that of any program, but for
/// formulas of n, and of the turn j of a loop.
class FamilyText {
public:
  /// What is wrong with the text, or nothing.
  static std::string split(StringRef text, std::string &free,
                           std::vector<std::string> &transports,
                           std::vector<FamilyText> &families);

  proof::Claim claim; ///< Without evidence.

  /// The program of n; loops have one turn, j.
  std::optional<Program> at(int64_t n, int64_t j, ImportContext &context) const;
  /// The rows of all n. False after reports.
  bool read(ImportContext &context, proof::Template &rows) const;

private:
  StringRef head, body;
};

} // namespace ppcc
