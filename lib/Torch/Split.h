// Runs the backward of a graph whole, or in two parts: input first, weights
// later.
#pragma once

#include "ppcc/Torch/Stage.h"

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

namespace ppcc::rt {

/// Where the graph of a forward begins: an edge for each output, invalid for
/// one that needs no gradient. The outputs themselves are not kept.
struct Roots : torch::autograd::edge_list {
  Roots() = default;
  explicit Roots(const Tensors &outputs);
};

/// The beginnings of a graph, the gradients that came for them, and the leaves
/// that the inputs are. An output without a gradient counts for nothing.
struct Backward {
  const Roots &roots;
  const Tensors &outputGrads, &inputs;

  /// Adds to the gradients of all leaves but the inputs, and returns those of
  /// the inputs; undefined where an input has no path to the outputs. Frees
  /// what the graph saved.
  Tensors runFull() const;
};

/// What W has still to run: the graph below the split nodes.
class DeferredWeights {
public:
  /// Returns the gradients of the inputs as `backward.whole()` does, to the
  /// bit, and keeps the rest for run(). The graph is cut: nothing else can use
  /// it any more. O(nodes of the graph).
  Tensors runInputBackward(const Backward &backward);

  /// Adds to the gradients of the weights.
  void run();

private:
  std::vector<torch::autograd::Edge> roots;
  Tensors grads;
};

} // namespace ppcc::rt
