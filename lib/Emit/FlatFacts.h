// What is known of a program with its loops written out.
#pragma once

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/IR/Loops.h"

#include <optional>

namespace ppcc {

/// Facts that positions in a list of loops do not tell. O(flatSize()) to make.
class FlatFacts {
  std::optional<Program> writtenOut; ///< When there are loops.

public:
  explicit FlatFacts(const Program &given)
      : writtenOut(given.loops().empty() ? std::nullopt
                                         : std::optional(unrolled(given))),
        program(writtenOut ? *writtenOut : given),
        buffers(Analyses(program).buffers()) {}
  FlatFacts(const FlatFacts &) = delete;

  const Program &program;
  const ReceiveBuffers &buffers;
};

} // namespace ppcc
