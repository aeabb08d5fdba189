// Looks for times that show a claim.
#pragma once

#include "ppcc/EveryP/Certificate.h"

namespace ppcc::every {

/// What was found of the statements of a region.
struct SearchResult {
  std::optional<Certificate> certificate; ///< Nothing where none was found,
  std::string why;                        ///< with the reason.
  /// Natural on one side of a line where the makespan is another on each.
  std::optional<Form> splitLine;
};

/// Searches for a certificate, with an exact makespan where `isTimed`. What it
/// gives has been checked. Only where it `maySplit` it gives a line instead.
SearchResult findCertificate(const Statements &statements, bool isTimed,
                             bool maySplit);

} // namespace ppcc::every
