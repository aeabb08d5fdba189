// Stages of LibTorch for the engine: any module that computes with autograd.
#pragma once

#include "ppcc/Runtime/Stage.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

namespace ppcc::rt {

/// What goes from stage to stage. A tensor may be undefined: the gradient of
/// what has none.
using Tensors = std::vector<at::Tensor>;

/// A parameter under the name that it has in the whole network. Parameters with
/// one name, wherever they are, are one weight: see SharedWeights.h.
struct Parameter {
  std::string name;
  at::Tensor value;
};

/// One stage of the network.
struct StageModule {
  /// Computes with autograd. Reads what the stages before it gave: their
  /// tensors in one list, by stage.
  std::function<Tensors(const Tensors &)> forward;
  std::vector<Parameter> parameters;
};

/// A stage from a module of LibTorch whose `forward` takes tensors, or a list
/// of them, and gives a tensor, a tuple of them or a list. `prefix` is put
/// before the names of the parameters: stages that hold one weight twice must
/// give it one name.
template <class Module>
StageModule stageOf(std::shared_ptr<Module> module, const std::string &prefix);

/// The network to train, of which each rank makes its stages.
struct Network {
  std::function<StageModule(uint8_t pipe, uint16_t stage)> make;
  /// What the first stage reads.
  std::function<Tensors(uint32_t microbatch)> input;
  /// One number, from what the last stage gives. Both may be called at the same
  /// time for several microbatches.
  std::function<at::Tensor(const Tensors &output, uint32_t microbatch)> loss;
};

struct TorchOptions {
  /// Gradients are those of the mean of the losses over all microbatches of the
  /// program; otherwise of their sum.
  bool averagesLosses = true;
  /// F keeps its input alone, and the backward runs it again.
  bool recomputes = false;
  /// Where modules draw random numbers (dropout): each forward draws them from
  /// the seed, the step, its pipe, stage and microbatch, whatever the order of
  /// the actions; one at a time in a process. Needed for `recomputes` then.
  std::optional<uint64_t> seed;
};

/// The loss of a microbatch.
struct Loss {
  uint32_t microbatch;
  double value;
};

/// All stages of one rank. I and W are cut out of the graph that autograd made
/// in F, and give together what B gives, to the bit; a stage whose input needs
/// no gradient does in W what B does. Gradients are summed in `grad()` of the
/// parameters. Calls for different microbatches or stages may run at the same
/// time.
class TorchStage : public StageHooks {
public:
  using Value = Tensors;

  /// Makes the stages of the rank.
  TorchStage(const Program &program, uint32_t rank, Network network,
             const TorchOptions &options = {});
  TorchStage(TorchStage &&) noexcept;
  TorchStage &operator=(TorchStage &&) noexcept;
  ~TorchStage();

  Tensors forward(const Work &work, const Inputs<Tensors> &inputs);
  std::vector<Tensors> backward(const Work &work, Tensors *outputGrad);
  std::vector<Tensors> backward_input(const Work &work, Tensors *outputGrad);
  void backward_weight(const Work &work);
  void add(Tensors &sum, const Tensors &gradient);
  void release(const Work &work);

  /// Of all stages of the rank, in the order of pipes and stages.
  const std::vector<Parameter> &parameters() const;
  /// The losses since the last call, not scaled; in the order they came.
  std::vector<Loss> takeLosses();
  /// Begins a step: forgets the gradients.
  void beginStep();
  /// Graphs, or kept inputs, that were alive at one time since the last call.
  uint32_t takePeak();

private:
  struct State;
  std::unique_ptr<State> state;
};

// Modules as stages.

namespace detail {

template <class> inline constexpr bool isTuple = false;
template <class... Ts> inline constexpr bool isTuple<std::tuple<Ts...>> = true;

inline Tensors listOf(at::Tensor tensor) { return {std::move(tensor)}; }
inline Tensors listOf(Tensors tensors) { return tensors; }
template <class... Ts> Tensors listOf(const std::tuple<Ts...> &tuple) {
  return std::apply([](const Ts &...tensor) { return Tensors{tensor...}; },
                    tuple);
}

/// Calls `forward` with as many tensors as it takes, up to eight.
template <class Module, size_t... I>
bool tryForward(Module &module, const Tensors &in, Tensors &out,
                std::index_sequence<I...>) {
  if constexpr (requires { listOf(module.forward(in[I]...)); }) {
    if (in.size() != sizeof...(I))
      return false;
    out = listOf(module.forward(in[I]...));
    return true;
  }
  return false;
}

template <class Module> Tensors callForward(Module &module, const Tensors &in) {
  Tensors out;
  bool called = [&]<size_t... N>(std::index_sequence<N...>) {
    return (tryForward(module, in, out, std::make_index_sequence<N + 1>()) ||
            ...);
  }(std::make_index_sequence<8>());
  if (called)
    return out;
  if constexpr (requires { listOf(module.forward(in)); })
    return listOf(module.forward(in));
  throw std::runtime_error("the forward of the module does not take " +
                           std::to_string(in.size()) + " tensors");
}

} // namespace detail

template <class Module>
StageModule stageOf(std::shared_ptr<Module> module, const std::string &prefix) {
  StageModule stage;
  for (const auto &parameter : module->named_parameters())
    stage.parameters.push_back({prefix + parameter.key(), parameter.value()});
  stage.forward = [module](const Tensors &in) {
    return detail::callForward(*module, in);
  };
  return stage;
}

} // namespace ppcc::rt
