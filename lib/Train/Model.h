// A small transformer that can be cut into stages anywhere between its layers.
#pragma once

#include "Options.h"
#include "Text.h"

#include "ppcc/Torch/Stage.h"

namespace ppcc {

/// The shape of the network; every rank makes its part of it, with the same
/// first weights.
class Transformer {
public:
  Transformer(const TrainOptions &options, uint32_t vocabulary,
              uint32_t numLayers)
      : options(options), vocabulary(vocabulary), numLayers(numLayers) {}

  /// A stage: its share of the layers, before the first the embedding, after
  /// the last the head, which is tied to the embedding. Between stages go two
  /// tensors: what the layers make, and the embedding, of which each layer adds
  /// a part. What several stages give is summed.
  rt::StageModule stage(uint32_t stage, uint32_t numStages) const;
  /// All stages of pipes with these numbers of stages. Every weight is one
  /// tensor, wherever it is used.
  std::vector<std::vector<rt::StageModule>>
  whole(const std::vector<uint32_t> &numStages) const;

  /// Cross entropy of the scores of `stage`, for the tokens of Samples.
  at::Tensor loss(const rt::Tensors &scores, const at::Tensor &tokens) const;
  /// The tokens as a tensor, a sample a row.
  at::Tensor tokens(std::vector<int64_t> samples) const;

private:
  class Parts;

  TrainOptions options;
  uint32_t vocabulary, numLayers;
};

} // namespace ppcc
