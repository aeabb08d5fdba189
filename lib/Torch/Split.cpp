// Splits a backward: I gives the gradients of the inputs, W those of weights.
//
// Algorithm: the split of Qi et al. (Zero Bubble, ICLR 2024); compare PyTorch's
// torch/distributed/pipelining/_backward.py. An iterative depth-first search in
// post-order marks the nodes that lead to an input. A split node has an edge
// that leads to an input and one that does not. I is one run of the engine from
// the outputs to the inputs, which also captures the gradients that enter split
// nodes. I then cuts the edges of split nodes that lead to inputs. W is one run
// of the engine from the split nodes, and from outputs that lead to no input.
// Invariant: no path joins two split nodes after the cut, so that W adds no
// gradient twice.
// Cost: O(nodes and edges) beside the two runs; I keeps the graph for W.
//
// Example: h = x W1, y = h W2; both products are split nodes.
// I: from dy to dx; captures dy for the second product and dh for the first.
// W: dW2 from dy and h, dW1 from dh and x.
#include "Split.h"

#include "ppcc/Runtime/Error.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_map>

using namespace ppcc::rt;
using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::Node;
using torch::autograd::impl::gradient_edge;

namespace {

/// The edges that have a gradient.
struct GradientEdges {
  edge_list edges;
  Tensors grads;

  explicit GradientEdges(const Backward &backward) {
    if (backward.outputGrads.size() != backward.roots.size())
      throw std::runtime_error(concat(backward.outputGrads.size(),
                                      " gradients for ", backward.roots.size(),
                                      " outputs"));
    for (size_t i = 0; i != backward.roots.size(); ++i)
      if (backward.roots[i].is_valid() && backward.outputGrads[i].defined())
        add(backward.roots[i], backward.outputGrads[i]);
  }
  GradientEdges() = default;
  void add(const Edge &edge, const at::Tensor &grad) {
    edges.push_back(edge);
    grads.push_back(grad);
  }
};

/// Which nodes of a graph lead to one of its inputs.
class Paths {
public:
  Paths(const edge_list &roots, const Tensors &inputs) {
    for (const at::Tensor &input : inputs)
      if (input.requires_grad())
        leadsToInput[gradient_edge(input).function.get()] = true;
    for (const Edge &root : roots)
      visit(root.function.get());
  }

  bool has(const Edge &edge) const {
    return edge.is_valid() && leadsToInput.at(edge.function.get());
  }
  /// The nodes on a path to an input from which another edge leads to weights.
  const std::vector<Node *> &splitNodes() const { return split; }

private:
  /// Depth first, without recursion: graphs can be deep.
  void visit(Node *root) {
    struct Frame {
      Node *node;
      size_t next;
    };
    std::vector<Frame> stack;
    auto enter = [&](Node *node) {
      if (leadsToInput.try_emplace(node, false).second)
        stack.push_back({node, 0});
    };
    enter(root);
    while (!stack.empty()) {
      Frame &top = stack.back();
      if (top.next != top.node->num_outputs()) {
        const Edge &edge = top.node->next_edge(top.next++);
        if (edge.is_valid())
          enter(edge.function.get());
        continue;
      }
      leave(*top.node);
      stack.pop_back();
    }
  }
  void leave(Node &node) {
    bool toInput = false, toWeight = false;
    for (const Edge &edge : node.next_edges())
      if (edge.is_valid())
        (has(edge) ? toInput : toWeight) = true;
    leadsToInput[&node] = toInput;
    if (toInput && toWeight)
      split.push_back(&node);
  }

  std::unordered_map<Node *, bool> leadsToInput; ///< All nodes.
  std::vector<Node *> split;
};

} // namespace

Roots::Roots(const Tensors &outputs) {
  for (const at::Tensor &output : outputs)
    push_back(output.defined() && output.requires_grad() ? gradient_edge(output)
                                                         : Edge());
}

Tensors Backward::runFull() const {
  GradientEdges given(*this);
  if (!given.edges.empty())
    Engine::get_default_engine().execute(given.edges, given.grads,
                                         /*keep_graph=*/false,
                                         /*create_graph=*/false,
                                         /*accumulate_grad=*/true);
  Tensors result;
  for (const at::Tensor &input : inputs)
    result.push_back(std::exchange(input.mutable_grad(), at::Tensor()));
  return result;
}

Tensors DeferredWeights::runInputBackward(const Backward &backward) {
  GradientEdges all(backward), onPath;
  Paths paths(all.edges, backward.inputs);
  for (size_t i = 0; i != all.edges.size(); ++i) {
    if (paths.has(all.edges[i])) {
      onPath.add(all.edges[i], all.grads[i]);
    } else {
      roots.push_back(all.edges[i]);
      grads.push_back(all.grads[i]);
    }
  }

  // Wanted: the gradients of the inputs, and what comes into the split nodes.
  edge_list wanted;
  for (const at::Tensor &input : backward.inputs)
    if (input.requires_grad())
      wanted.push_back(gradient_edge(input));
  for (Node *node : paths.splitNodes())
    for (uint32_t i = 0; i != node->num_inputs(); ++i)
      wanted.emplace_back(node->shared_from_this(), i);
  Tensors found(wanted.size());
  if (!onPath.edges.empty())
    found =
        Engine::get_default_engine().execute(onPath.edges, onPath.grads,
                                             /*keep_graph=*/true,
                                             /*create_graph=*/false,
                                             /*accumulate_grad=*/false, wanted);
  Tensors result;
  size_t next = 0;
  for (const at::Tensor &input : backward.inputs)
    result.push_back(input.requires_grad() ? found[next++] : at::Tensor());
  for (; next != wanted.size(); ++next) {
    if (!found[next].defined())
      continue;
    roots.push_back(wanted[next]);
    grads.push_back(found[next]);
  }
  // Without the cut, W would run from one split node through the next, and
  // count its weights twice. It also frees what lies between them.
  for (Node *node : paths.splitNodes())
    for (Edge &edge : node->next_edges())
      if (paths.has(edge))
        edge = Edge();
  return result;
}

void DeferredWeights::run() {
  edge_list from = std::move(roots);
  Tensors with = std::move(grads);
  if (!from.empty())
    Engine::get_default_engine().execute(from, with, /*keep_graph=*/false,
                                         /*create_graph=*/false,
                                         /*accumulate_grad=*/true);
}
