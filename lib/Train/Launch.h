// Starts workers as processes and hears what they tell, until all have ended.
#pragma once

#include "Messages.h"

#include <functional>
#include <optional>
#include <span>

namespace ppcc {

struct Worker {
  std::string name; ///< For messages: `rank 2`.
  std::function<void(Reporter &)> work;
};

/// Forks a process a worker; `hear` gets each message but Failure and Done,
/// with the number of its worker. When one fails or is killed, the others have
/// two seconds to end by themselves. Returns why the run failed, or nothing.
/// The calling process must have one thread.
std::optional<std::string>
runWorkers(std::span<const Worker> workers,
           const std::function<void(size_t, const WorkerMessage &)> &hear);

} // namespace ppcc
