// Splits a backward: I gives the gradient of the input, W those of the weights.
//
// Algorithm: the split of Qi et al. (Zero Bubble, ICLR 2024); compare PyTorch's
// torch/distributed/pipelining/_backward.py. An iterative depth-first search in
// post-order marks the nodes that lead to an input. A split node has an edge
// that leads to an input and one that does not. I is one run of the engine from
// the output to the inputs, which also captures the gradients that enter split
// nodes. I then cuts the edges of split nodes that lead to inputs. W is one run
// of the engine from the split nodes, and from an output that leads to no
// input.
// Invariant: no path joins two split nodes after the cut, so that W adds no
// gradient twice.
// Cost: O(nodes and edges) beside the two runs; I keeps the graph for W.
//
// Example: h = x W1, y = h W2; both products are split nodes.
// I: from dy to dx; captures dy for the second product and dh for the first.
// W: dW2 from dy and h, dW1 from dh and x.
#pragma once

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_map>
#include <utility>
#include <vector>

namespace example {

using Tensors = std::vector<at::Tensor>;

/// The backward of one graph, whole or in two parts. It begins at an output,
/// which is not kept, and ends at the weights and at the inputs, which are
/// leaves. The engine frees what the graph saved.
class Backward {
public:
  Backward() = default;
  Backward(const at::Tensor &output, Tensors inputs)
      : inputs(std::move(inputs)) {
    if (output.requires_grad())
      root = torch::autograd::impl::gradient_edge(output);
  }

  /// Adds to the gradients of the weights; returns those of the inputs.
  Tensors runFull(const at::Tensor &outputGrad) {
    if (root.is_valid())
      run({std::exchange(root, {})}, {outputGrad}, false);
    Tensors result;
    for (const at::Tensor &input : inputs)
      result.push_back(std::exchange(input.mutable_grad(), at::Tensor()));
    return contiguous(std::move(result));
  }

  /// Returns the gradients of the inputs, to the bit as runFull() does, and
  /// cuts the graph: only runWeights() can use it from then on. O(nodes).
  Tensors runInputs(const at::Tensor &outputGrad) {
    if (!root.is_valid())
      return contiguous(Tensors(inputs.size()));
    Edge output = std::exchange(root, {});
    findPaths(output.function.get());
    if (!leadsToInput(output)) {
      deferred = {output}, deferredGrads = {outputGrad};
      return contiguous(Tensors(inputs.size()));
    }
    Edges wanted;
    for (const at::Tensor &input : inputs)
      if (input.requires_grad())
        wanted.push_back(torch::autograd::impl::gradient_edge(input));
    for (Node *node : splitNodes)
      for (uint32_t i = 0; i != node->num_inputs(); ++i)
        wanted.emplace_back(node->shared_from_this(), i);
    Tensors found = run({output}, {outputGrad}, true, wanted), result;
    size_t next = 0;
    for (const at::Tensor &input : inputs)
      result.push_back(input.requires_grad() ? found[next++] : at::Tensor());
    for (; next != wanted.size(); ++next)
      if (found[next].defined()) {
        deferred.push_back(wanted[next]);
        deferredGrads.push_back(found[next]);
      }
    for (Node *node : splitNodes)
      for (Edge &edge : node->next_edges())
        if (leadsToInput(edge))
          edge = Edge();
    splitNodes.clear();
    onPath.clear();
    return contiguous(std::move(result));
  }

  /// Adds to the gradients of the weights what runInputs() has left.
  void runWeights() {
    if (!deferred.empty())
      run(std::exchange(deferred, {}), std::exchange(deferredGrads, {}), false);
  }

private:
  using Node = torch::autograd::Node;
  using Edge = torch::autograd::Edge;
  using Edges = torch::autograd::edge_list;

  /// With `wanted` the gradients of these edges are returned and none is
  /// accumulated.
  static Tensors run(const Edges &from, const Tensors &grads, bool keepsGraph,
                     const Edges &wanted = {}) {
    return torch::autograd::Engine::get_default_engine().execute(
        from, grads, keepsGraph, /*create_graph=*/false,
        /*accumulate_grad=*/wanted.empty(), wanted);
  }
  /// Every stage that was read gets a gradient, in one piece of memory.
  Tensors contiguous(Tensors grads) const {
    for (size_t i = 0; i != grads.size(); ++i)
      grads[i] = grads[i].defined() ? grads[i].contiguous()
                                    : at::zeros_like(inputs[i]).contiguous();
    return grads;
  }

  bool leadsToInput(const Edge &edge) const {
    return edge.is_valid() && onPath.at(edge.function.get());
  }
  /// Depth first, without recursion: graphs can be deep.
  void findPaths(Node *first) {
    for (const at::Tensor &input : inputs)
      if (input.requires_grad())
        onPath[torch::autograd::impl::gradient_edge(input).function.get()] =
            true;
    std::vector<std::pair<Node *, size_t>> stack; // With the next edge of each.
    auto enter = [&](Node *node) {
      if (onPath.try_emplace(node, false).second)
        stack.emplace_back(node, 0);
    };
    enter(first);
    while (!stack.empty()) {
      auto &[node, next] = stack.back();
      if (next != node->num_outputs()) {
        if (const Edge &edge = node->next_edge(next++); edge.is_valid())
          enter(edge.function.get());
        continue;
      }
      leave(*node);
      stack.pop_back();
    }
  }
  void leave(Node &node) {
    bool toInput = false, toWeight = false;
    for (const Edge &edge : node.next_edges())
      if (edge.is_valid())
        (leadsToInput(edge) ? toInput : toWeight) = true;
    onPath[&node] = toInput;
    if (toInput && toWeight)
      splitNodes.push_back(&node);
  }

  Edge root; ///< Invalid for an output that needs no gradient.
  Tensors inputs;
  std::unordered_map<Node *, bool> onPath; ///< All nodes.
  std::vector<Node *> splitNodes;
  Edges deferred; ///< Where W begins, and the gradients there.
  Tensors deferredGrads;
};

} // namespace example
