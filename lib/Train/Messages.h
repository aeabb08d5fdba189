// What a worker tells the process that has started it, through a pipe.
#pragma once

#include "ppcc/Runtime/Recorder.h"

#include <cstdint>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

namespace ppcc {

/// The losses of a step that a worker has seen.
struct StepLosses {
  uint64_t step;
  std::vector<uint32_t> microbatches;
  std::vector<double> values; ///< One each.

  auto all() { return std::tie(step, microbatches, values); }
};

/// The gradient of a weight in the first step.
struct Gradient {
  std::string name;
  std::vector<double> values;

  auto all() { return std::tie(name, values); }
};

/// What was alive at one time on a rank, which is counted over all replicas.
struct Peak {
  uint32_t rank, activations;
  uint64_t bytes; ///< Beside weights, their gradients and messages on their
                  ///< way; 0 when not counted.

  auto all() { return std::tie(rank, activations, bytes); }
};

/// When a rank did what in the last step. All processes of a machine have one
/// clock.
struct Events {
  uint32_t rank;
  bool concurrent;
  std::vector<rt::TraceEvent> events;

  auto all() { return std::tie(rank, concurrent, events); }
};

/// Why a worker has ended early.
struct Failure {
  std::string text;
  bool isRootCause; ///< False: because another had failed.

  auto all() { return std::tie(text, isRootCause); }
};

/// The worker has done all it had to.
struct Done {
  auto all() { return std::tie(); }
};

using WorkerMessage =
    std::variant<StepLosses, Gradient, Peak, Events, Failure, Done>;

/// The worker's end of the pipe.
class Reporter {
public:
  explicit Reporter(int file) : file(file) {}
  /// The reader's end may be gone: then the process ends.
  void send(const WorkerMessage &message);

private:
  int file;
};

/// Bytes of the pipe, as they come, to messages.
class MessageReader {
public:
  void add(const char *bytes, size_t count) { text.append(bytes, count); }
  /// Takes the next that is whole; false when there is none.
  bool next(WorkerMessage &message);

private:
  std::string text;
};

} // namespace ppcc
