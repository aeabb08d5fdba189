// What a rank has begun and whose backward has not ended.
#pragma once

#include "ppcc/Runtime/Values.h"
#include "ppcc/Runtime/Wiring.h"

#include <algorithm>
#include <stdexcept>

namespace ppcc::rt {

/// The microbatches under way on the stages of a rank: nothing runs twice, or
/// without what it needs of its own stage, and no forward is left out. Throws
/// std::runtime_error, which says what is wrong. A bit a forward.
class ActivationTracker {
public:
  ActivationTracker(const Program &program, uint32_t rank, const Wiring &wiring)
      : program(program), limit(program.ranks[rank].peakActivations),
        wiring(wiring), done(wiring.numStages()), begun(wiring.numStages()) {}

  /// A forward begins.
  void beginForward(const Row &row, const StageWiring &stage) {
    std::vector<bool> &known = begun[stage.index];
    size_t number = row.microbatch - program.pipes[row.pipe].firstMicrobatch;
    if (known.size() <= number)
      known.resize(number + 1);
    if (known[number])
      throw std::runtime_error("runs twice");
    known[number] = true;
    if (program.hasBackward) {
      // What a slice attends to, the slices before it, stays until its own
      // backward. Without a backward nothing tells.
      if (sliceOf(row) != 0 && !done[stage.index].find(row.microbatch - 1))
        throw std::runtime_error("runs without the slice before it");
      done[stage.index].insert(row.microbatch, slot::Output);
    }
    if (limit != 0 && count == limit)
      throw std::runtime_error(concat("begins more activations than the ",
                                      limit, " that the compiler counted"));
    maxCount = std::max(maxCount, ++count);
  }

  /// A backward begins, or one of its parts.
  void beginBackward(const Row &row, const Kind &kind,
                     const StageWiring &stage) {
    uint8_t *slots = done[stage.index].find(row.microbatch);
    if (!slots)
      throw std::runtime_error("runs without its forward");
    if ((*slots & kind.needs) != kind.needs)
      throw std::runtime_error("runs before the gradient of the input");
    if (*slots & kind.defines)
      throw std::runtime_error("runs twice");
    *slots |= kind.defines;
    if (kind.defines & slot::InputGrad)
      checkNextSlice(row, stage);
  }

  /// Both parts of the backward have ended.
  void end(uint32_t microbatch, const StageWiring &stage) {
    done[stage.index].erase(microbatch);
    --count;
  }

  /// All forwards of the rank have begun.
  void checkComplete() const {
    for (const StageWiring &stage : wiring.ofStages()) {
      const Pipe &pipe = program.pipes[stage.pipe];
      const std::vector<bool> &known = begun[stage.index];
      auto missing = std::ranges::find(known, false) - known.begin();
      if (missing != pipe.numMicrobatches)
        throw std::runtime_error(
            concat("the forward of microbatch ", pipe.firstMicrobatch + missing,
                   " on stage ", stage.number, " is missing"));
    }
  }

  /// How many forwards have begun and not got their backward; without a
  /// backward, how many have begun.
  uint32_t size() const { return count; }
  /// The most that size() has been.
  uint32_t peak() const { return maxCount; }
  /// Calls `visit` with each microbatch whose backward is missing.
  template <class Visit> void forEach(Visit visit) const {
    for (const auto &stage : done)
      stage.forEach(visit);
  }

private:
  /// Which slice of its sequence a microbatch is.
  uint32_t sliceOf(const Row &row) const {
    const Pipe &pipe = program.pipes[row.pipe];
    return (row.microbatch - pipe.firstMicrobatch) % pipe.slices;
  }

  /// The slices after it hand back gradients first.
  void checkNextSlice(const Row &row, const StageWiring &stage) {
    if (sliceOf(row) + 1 == program.pipes[row.pipe].slices)
      return;
    uint8_t *next = done[stage.index].find(row.microbatch + 1);
    if (next && !(*next & slot::InputGrad))
      throw std::runtime_error("runs before the backward of the next slice");
  }

  const Program &program;
  uint32_t limit; ///< 0: the compiler has not counted them.
  const Wiring &wiring;
  /// By stage: the slots that are done.
  std::vector<MicrobatchMap<uint8_t>> done;
  /// By stage and microbatch, from the first: whether its forward has begun.
  std::vector<std::vector<bool>> begun;
  uint32_t count = 0, maxCount = 0;
};

} // namespace ppcc::rt
