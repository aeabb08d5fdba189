// Reads what profilers measured.
#pragma once

#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/IR/Costs.h"

namespace ppcc {

/// An event of a trace that has a beginning and an end.
struct TraceEvent {
  std::string name;
  Time duration = 0;          ///< Microseconds, as all times here.
  std::optional<Time> start;  ///< Nothing when it is out of range.
  std::optional<Time> waited; ///< `waited` among its arguments.
  SourceRange place;          ///< Of its name.
};

/// Calls `visit` for each complete event of a trace in Chrome's JSON, as the
/// PyTorch profiler writes it. False after reports of what is wrong with the
/// file. O(bytes).
bool readTrace(uint32_t file, SourceManager &sources, DiagnosticEngine &diags,
               function_ref<void(const TraceEvent &)> visit);

} // namespace ppcc
