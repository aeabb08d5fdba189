// What is to be proven, as far as it makes sense.
#pragma once

#include "ppcc/Prove/Prove.h"

namespace ppcc {

/// A schedule, its free parameter, and a proof without ranges.
struct Asked {
  Compiled compiled; ///< As far as it is checked.
  uint32_t param = 0;
  Proof proof;
};

/// Nothing after a report, or where the request is misused, which `misuse` then
/// says.
std::optional<Asked> readRequest(const ProveRequest &request, Session &session,
                                 std::string &misuse);

} // namespace ppcc
