// Where a rank stands in its list, and how it says so when something fails.
#pragma once

#include "ppcc/Runtime/Link.h"
#include "ppcc/Runtime/Options.h"

#include <exception>

namespace ppcc::rt {

/// Walks the linked list of a rank, turn by turn of its loops. What others
/// throw becomes an Error that names the action that runs.
class Position {
public:
  Position(const Program &program, uint32_t rank, const Linked &linked,
           milliseconds patience)
      : program(program), linked(linked), list(program.ranks[rank]),
        patience(patience), rank(rank) {}

  /// Goes to the first operation, when all are linked.
  void rewind() { enter(0); }
  /// The next operation; null behind the last.
  const Operation *next() const { return at; }
  /// Goes behind the next item, of which this is the end.
  void pass(const Operation *end) {
    at = end;
    if (at == turnEnd)
      nextTurn();
  }

  const Role &roleOf(const Operation &operation) const {
    return linked.wiring.role(operation.role);
  }
  uint32_t microbatchOf(const Operation &operation) const {
    return operation.microbatch + shift;
  }
  /// Of a message.
  Label labelOf(const Operation &operation) const {
    Label label = roleOf(operation).label;
    label.microbatch = microbatchOf(operation);
    return label;
  }

  /// The send of a message, as in `0SEND_F3`.
  std::string text(const Label &label) const {
    auto cellOf = [&](size_t kind) {
      return cell(program, {static_cast<uint8_t>(kind), label.pipe, label.from,
                            label.microbatch, label.to, 0, 0});
    };
    if (label.isMove())
      return cellOf(size_t(label.slot) - Label::firstMove);
    for (const Kind &kind : program.kinds)
      if (kind.kindClass == KindClass::Send && kind.defines == label.slot)
        return cellOf(static_cast<size_t>(&kind - program.kinds.data));
    return "the message";
  }
  /// For what a rank that blocked waits, in words; and for whom.
  std::string waitsFor() const {
    std::string place = placeOf(program, rowOf(*current).site);
    return concat("rank ", rank, " waits in ", cell(program, rowOf(*current)),
                  place.empty() ? "" : " (" + place + ")", " for ",
                  words(awaited, awaitedRank));
  }

  /// A wait of the transport for a rank has not ended: `message` is what is
  /// waited for, null for the receive of what was sent. It must stay where it
  /// is while the rank is blocked. Gives false.
  bool blockOn(uint32_t other, const Label *message) {
    awaited = message;
    awaitedRank = other;
    return false;
  }
  /// The same wait has thrown, which is being handled.
  [[noreturn, gnu::cold, gnu::noinline]] void
  failToWait(uint32_t other, const Label *message) const {
    std::string awaited = words(message, other);
    rethrow(hasWaitedFor(awaited), awaited);
  }
  /// Calls a wait of the transport before or after all actions.
  template <class Wait>
  void waitOutside(const std::string &awaited, Wait waitFor) const {
    try {
      waitFor();
    } catch (...) {
      rethrow(hasWaitedFor(awaited), awaited, false);
    }
  }
  /// Calls what does not wait.
  template <class Function> void tell(Function function) const {
    try {
      function();
    } catch (...) {
      rethrow("", "");
    }
  }

  /// At the end of all actions the device still waits for a message, of which
  /// this tells.
  [[noreturn, gnu::cold]] void failStuck(const Label &message) {
    for (const Segment &segment : linked.loops)
      for (uint64_t i = 0; i != segment.rows; ++i) {
        const Operation &operation = linked.operations[segment.firstRow + i];
        shift = 0;
        for (uint32_t turn = 0; turn != segment.count; ++turn) {
          if (!operation.isWork() && labelOf(operation) == message) {
            current = &operation;
            fail(hasWaitedFor("the device, which waits for ") + text(message));
          }
          shift += static_cast<uint32_t>(segment.advance);
        }
      }
    throw TimedOut(); // It is none of this program.
  }

  template <class... Parts>
  [[noreturn, gnu::cold]] void fail(const Parts &...parts) const {
    throw errorHere<Error>(concat(parts...));
  }
  /// Throws what a stage has thrown, with its place.
  [[noreturn, gnu::cold, gnu::noinline]] void
  rethrow(const std::exception_ptr &thrown) const {
    try {
      std::rethrow_exception(thrown);
    } catch (...) {
      rethrow("has waited too long for other ranks", "the stage threw");
    }
  }

  const Operation *current = nullptr; ///< Errors are told of this one.

private:
  void enter(size_t number) {
    loop = number;
    turns = shift = 0;
    at = nullptr;
    if (loop != linked.loops.size())
      beginTurn();
  }
  void beginTurn() {
    const Segment &segment = linked.loops[loop];
    at = linked.operations.data() + segment.firstRow;
    turnEnd = at + segment.rows;
  }
  void nextTurn() {
    if (++turns == linked.loops[loop].count)
      return enter(loop + 1);
    // The sum may pass zero on its way; what it is added to may not.
    shift += static_cast<uint32_t>(linked.loops[loop].advance);
    beginTurn();
  }

  Row rowOf(const Operation &operation) const {
    Row row = list.row(operation.row);
    row.microbatch = microbatchOf(operation);
    return row;
  }
  std::string words(const Label *message, uint32_t other) const {
    return concat(message ? text(*message) : "the receive", " of rank ", other);
  }
  std::string hasWaitedFor(const std::string &what) const {
    return concat("has waited ", patience.count(), " ms for ", what);
  }
  /// Throws what is being handled, with the place of an action if there is one.
  /// `late` is said of a wait that was too long, `what` ahead of what others
  /// say.
  [[noreturn, gnu::cold, gnu::noinline]] void
  rethrow(const std::string &late, const std::string &what,
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
    return E(rank, cell(program, row), placeOf(program, row.site), text);
  }

  const Program &program;
  const Linked &linked;
  const RankProgram &list;
  milliseconds patience;
  uint32_t rank;

  uint32_t turns = 0; ///< How often the loop has run,
  uint32_t shift = 0; ///< and what that adds to microbatches.
  size_t loop = 0;    ///< Of linked.loops.
  const Operation *at = nullptr, *turnEnd = nullptr;

  const Label *awaited = nullptr; ///< Of a rank that blocked.
  uint32_t awaitedRank = 0;
};

} // namespace ppcc::rt
