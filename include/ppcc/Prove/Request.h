// What is to be proven, as far as it makes sense.
#pragma once

#include "ppcc/Prove/Prove.h"

namespace ppcc {

/// A schedule, its free parameters, and a proof without ranges.
struct ParsedRequest {
  Compiled compiled; ///< As far as it is checked.
  SmallVector<uint32_t, 2> free;
  Proof proof;
};

/// Of one free parameter, or several with commas. Nothing after a report, or
/// where the request is misused, which `usageError` then says.
std::optional<ParsedRequest> readRequest(const ProveRequest &request,
                                         Session &session,
                                         std::string &usageError);

} // namespace ppcc
