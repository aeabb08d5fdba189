// Looks for times that show a claim.
#pragma once

#include "ppcc/EveryP/Check.h"

namespace ppcc::every {

/// What was found of the statements of a region.
struct Found {
  std::optional<Certificate> certificate; ///< Nothing where none was found,
  std::string why;                        ///< with the reason.
  /// Natural on one side of a line where the makespan is another on each.
  std::optional<Form> divides;
};

/// Searches for a certificate, with an exact makespan where `isTimed`. What it
/// gives has been checked. Only where it `mayDivide` it gives a line instead.
Found search(const Statements &statements, bool isTimed, bool mayDivide);

} // namespace ppcc::every
