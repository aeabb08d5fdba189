// Numbers for the pairs of stage and microbatch of all pipes.
#pragma once

#include "ppcc/IR/Head.h"

namespace ppcc {

/// The microbatches of a stage follow each other, and the stages of a pipe.
class PairNumbering {
public:
  explicit PairNumbering(ArrayRef<Pipe> pipes) {
    for (const Pipe &pipe : pipes) {
      ofPipes.push_back({pairs - pipe.firstMicrobatch, pipe.numMicrobatches});
      pairs += size_t(pipe.numStages()) * pipe.numMicrobatches;
    }
  }

  size_t size() const { return pairs; }
  size_t operator()(PipeId pipe, StageId stage, uint32_t microbatch) const {
    auto [first, perStage] = ofPipes[pipe.value];
    return first + stage.value * perStage + microbatch;
  }
  size_t operator()(const Action &action) const {
    return (*this)(action.pipe, action.stage, action.microbatch);
  }

private:
  struct OfPipe {
    size_t first; ///< Of microbatch 0, were it of the pipe.
    size_t perStage;
  };
  std::vector<OfPipe> ofPipes;
  size_t pairs = 0;
};

} // namespace ppcc
