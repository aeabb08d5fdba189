// Where a rank stands in its list, and how it says so when something fails.
#pragma once

#include "ppcc/Runtime/Link.h"
#include "ppcc/Runtime/Recorder.h"

#include <exception>

namespace ppcc::rt {

/// Walks the linked list of a rank, iteration by iteration of its loops. What
/// others throw becomes an Error that names the action that runs.
class ProgramCursor {
public:
  ProgramCursor(const Program &program, uint32_t rank, const Linked &linked,
                milliseconds timeout)
      : program(program), linked(linked), list(program.ranks[rank]),
        timeout(timeout), rank(rank) {}

  /// Goes to the first operation, when all are linked.
  void rewind() { enter(0); }
  /// The next operation; null after the last.
  const Operation *next() const { return at; }
  /// Goes after the next item, of which this is the end.
  void advanceTo(const Operation *end) {
    at = end;
    if (at == iterationEnd)
      nextIteration();
  }

  const ActionDescriptor &descriptorOf(const Operation &operation) const {
    return linked.wiring.descriptor(operation.descriptor);
  }
  uint32_t microbatchOf(const Operation &operation) const {
    return operation.microbatch + microbatchOffset;
  }
  /// Of a message.
  Label labelOf(const Operation &operation) const {
    Label label = descriptorOf(operation).label;
    label.microbatch = microbatchOf(operation);
    return label;
  }

  /// The send of a message, as in `0SEND_F3`.
  std::string text(const Label &label) const {
    auto nameOf = [&](size_t kind) {
      return actionName(program,
                        {static_cast<uint8_t>(kind), label.pipe, label.from,
                         label.microbatch, label.to, 0, 0});
    };
    if (label.isMove())
      return nameOf(size_t(label.slot) - Label::firstMove);
    for (const Kind &kind : program.kinds)
      if (kind.kindClass == KindClass::Send && kind.defines == label.slot)
        return nameOf(static_cast<size_t>(&kind - program.kinds.data));
    return "the message";
  }
  /// For what a rank that blocked waits, in words; and for whom.
  std::string describeWait() const {
    std::string location = locationOf(program, rowOf(*current).site);
    return concat("rank ", rank, " waits in ",
                  actionName(program, rowOf(*current)),
                  location.empty() ? "" : " (" + location + ")", " for ",
                  describe(awaited, awaitedRank));
  }

  /// A wait of the transport for a rank has not ended: `message` is what is
  /// waited for, null for the receive of what was sent. It must stay where it
  /// is while the rank is blocked. Gives false.
  bool blockedOn(uint32_t other, const Label *message) {
    awaited = message;
    awaitedRank = other;
    return false;
  }
  /// The same wait has thrown, which is being handled.
  [[noreturn]] void rethrowWaitError(uint32_t other,
                                     const Label *message) const {
    std::string awaited = describe(message, other);
    rethrow(timeoutMessage(awaited), awaited);
  }
  /// Calls a wait of the transport before or after all actions.
  template <class Wait>
  void waitOutsideActions(const std::string &awaited, Wait waitFor) const {
    try {
      waitFor();
    } catch (...) {
      rethrow(timeoutMessage(awaited), awaited, false);
    }
  }
  /// Calls what does not wait.
  template <class Function> void withErrorContext(Function function) const {
    try {
      function();
    } catch (...) {
      rethrow("", "");
    }
  }

  /// At the end of all actions the device still waits for a message, of which
  /// this tells.
  [[noreturn]] void failStalled(const Label &message) {
    for (const Segment &segment : linked.loops)
      for (uint64_t i = 0; i != segment.rows; ++i) {
        const Operation &operation = linked.operations[segment.firstRow + i];
        microbatchOffset = 0;
        for (uint32_t iteration = 0; iteration != segment.count; ++iteration) {
          if (!operation.runsOnStage() && labelOf(operation) == message) {
            current = &operation;
            fail(timeoutMessage("the device, which waits for ") +
                 text(message));
          }
          microbatchOffset += static_cast<uint32_t>(segment.advance);
        }
      }
    throw TimedOut(); // It is none of this program.
  }

  template <class... Parts>
  [[noreturn]] void fail(const Parts &...parts) const {
    throw errorHere<Error>(concat(parts...));
  }
  /// Throws what a stage has thrown, with its place.
  [[noreturn]] void rethrow(const std::exception_ptr &thrown) const {
    try {
      std::rethrow_exception(thrown);
    } catch (...) {
      rethrow("timed out waiting for other ranks", "the stage threw");
    }
  }

  const Operation *current = nullptr; ///< Errors name this one.

private:
  void enter(size_t number) {
    loop = number;
    iterations = microbatchOffset = 0;
    at = nullptr;
    if (loop != linked.loops.size())
      beginIteration();
  }
  void beginIteration() {
    const Segment &segment = linked.loops[loop];
    at = linked.operations.data() + segment.firstRow;
    iterationEnd = at + segment.rows;
  }
  void nextIteration() {
    if (++iterations == linked.loops[loop].count)
      return enter(loop + 1);
    // The sum may pass zero on its way; what it is added to may not.
    microbatchOffset += static_cast<uint32_t>(linked.loops[loop].advance);
    beginIteration();
  }

  Row rowOf(const Operation &operation) const {
    Row row = list.row(operation.row);
    row.microbatch = microbatchOf(operation);
    return row;
  }
  std::string describe(const Label *message, uint32_t other) const {
    return concat(message ? text(*message) : "the receive", " of rank ", other);
  }
  std::string timeoutMessage(const std::string &what) const {
    return concat("has waited ", timeout.count(), " ms for ", what);
  }
  /// Throws what is being handled, with the place of an action if there is one.
  /// `late` is said of a wait that was too long, `what` ahead of what others
  /// say.
  [[noreturn]] void rethrow(const std::string &late, const std::string &what,
                            bool inAction = true) const {
    try {
      throw;
    } catch (const Error &) {
      throw;
    } catch (const PeerFailed &failure) {
      throw errorHere<PeerError>(failure.text, inAction);
    } catch (const TimedOut &) {
      throw errorHere<Error>(late, inAction);
    } catch (const std::exception &error) {
      std::throw_with_nested(errorHere<Error>(
          concat(what, what.empty() ? "" : ": ", error.what()), inAction));
    } catch (...) {
      std::throw_with_nested(errorHere<Error>(what, inAction));
    }
  }
  template <class E>
  E errorHere(const std::string &text, bool inAction = true) const {
    if (!inAction)
      return E(rank, "", "", text);
    Row row = rowOf(*current);
    return E(rank, actionName(program, row), locationOf(program, row.site),
             text);
  }

  const Program &program;
  const Linked &linked;
  const RankProgram &list;
  milliseconds timeout;
  uint32_t rank;

  uint32_t iterations = 0;       ///< How often the loop has run,
  uint32_t microbatchOffset = 0; ///< and what that adds to microbatches.
  size_t loop = 0;               ///< Of linked.loops.
  const Operation *at = nullptr, *iterationEnd = nullptr;

  const Label *awaited = nullptr; ///< Of a rank that blocked.
  uint32_t awaitedRank = 0;
};

} // namespace ppcc::rt
