// By how much the costs of microbatches differ.
#pragma once

#include "ppcc/IR/Program.h"

namespace ppcc {

/// Whether anything is said of microbatches by themselves.
bool hasScales(const CostModel &costs);
/// Whether microbatches of one pipe may differ in their costs.
bool microbatchesDiffer(const Program &program);

/// The factors of a program's microbatches, found in constant time. Where the
/// program has none, values stay as they are. It points into the program, which
/// stays where it is. O(kinds + settings) to make.
class MicrobatchScales {
public:
  explicit MicrobatchScales(const Program &program);

  /// Whether the bytes of some message are scaled.
  bool hasBytes() const { return bytesColumn != nullptr; }

  /// What the time of an action is multiplied by, in units of scaling::unit.
  int64_t timeFactor(const Action &action) const {
    return times.empty() ? scaling::unit
                         : factor(times[action.kind.value], action);
  }
  Time time(const Action &action, Time time, Time limit) const {
    return times.empty() ? time
                         : scaling::apply(time, timeFactor(action), limit);
  }
  /// Of a value that may be negative.
  Amount memory(const Action &action, Amount amount) const {
    return memoryColumn ? scaledMemory(action, amount) : amount;
  }
  /// Of a message of this microbatch.
  Amount bytes(PipeId pipe, uint32_t microbatch, Amount bytes) const {
    return bytesColumn
               ? scaling::apply(bytes, bytesColumn[number(pipe, microbatch)],
                                amount::max)
               : bytes;
  }
  /// The largest factor of bytes.
  int64_t maxBytesFactor() const { return maxBytesScale; }

private:
  using Column = const int64_t *; ///< Null where nothing is said.

  Amount scaledMemory(const Action &action, Amount amount) const;
  size_t number(PipeId pipe, uint32_t microbatch) const {
    return firstOfPipe[pipe.value] + microbatch;
  }
  int64_t factor(Column column, const Action &action) const {
    return column && action.hasMicrobatch()
               ? column[number(action.pipe, action.microbatch)]
               : scaling::unit;
  }

  /// What a microbatch of each pipe needs to be its place in a column; wraps.
  std::vector<size_t> firstOfPipe;
  std::vector<Column> times; ///< By kind; empty when no time is scaled.
  Column memoryColumn = nullptr, bytesColumn = nullptr;
  int64_t maxBytesScale = scaling::unit;
};

} // namespace ppcc
