// Stages of LibTorch for the engine: any module that computes with autograd.
#pragma once

#include "ppcc/Runtime/Interleave.h"
#include "ppcc/Runtime/Stage.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
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
  std::vector<Parameter> buffers; ///< Those that a checkpoint keeps.
  /// Where a forward of the stage overlaps a backward: runs both, in what turns
  /// it likes, such as interleave (Interleave.h). Not with TorchOptions::seed.
  std::function<void(const Half &forward, const Half &backward)> overlap;
};

/// A stage from a module of LibTorch whose `forward` takes tensors, or a list
/// of them, and gives a tensor, a tuple of them or a list. `prefix` is put
/// before the names of the parameters: stages that hold one weight twice must
/// give it one name.
template <class Module>
StageModule stageFromModule(std::shared_ptr<Module> module,
                            const std::string &prefix);

/// The network to train, of which each rank makes its stages.
struct Network {
  std::function<StageModule(uint8_t pipe, uint16_t stage)> make;
  /// What the first stage reads.
  std::function<Tensors(uint32_t microbatch)> input;
  /// One number, from what the last stage gives. Both may be called at the same
  /// time for several microbatches.
  std::function<at::Tensor(const Tensors &output, uint32_t microbatch)> loss;
};

class TorchStage;

/// What has to be known of an action before it comes.
enum class ActionRole : uint8_t {
  Other,
  MovesSaved,       ///< F lists what autograd saves, so that it can be moved.
  ReducesGradients, ///< Between places that have one weight.
  Steps,            ///< The gradients of the rank must have been summed.
  ChecksStep,       ///< Old weights are kept until then.
};

/// What performs an action that a schedule declares: a function of TorchStage,
/// such as `&TorchStage::recompute`, or one of the user's.
struct TorchAction {
  std::function<void(TorchStage &, const ActionContext &)> perform;
  ActionRole role = ActionRole::Other;
};

/// Scales losses, so that small gradients do not vanish in types of few bits,
/// as torch.amp.GradScaler does: a step whose gradients are no numbers is left
/// out on all ranks and halves the scale, `interval` others double it.
struct LossScale {
  double value = 65536;
  uint32_t interval = 2000, numGood = 0;

  void endStep(bool isGood) {
    numGood = isGood ? (numGood + 1) % interval : 0;
    value *= !isGood ? 0.5 : numGood == 0 ? 2 : 1;
  }
};

/// What an optimizer keeps for a weight, by its names for it.
using WeightState = std::map<std::string, at::Tensor>;

/// How the weights of a rank move, for the actions of a program; Optimizer.h
/// makes one of an optimizer of LibTorch.
struct OptimizerHooks {
  std::function<void()> step;
  /// Keeps weights and state as they are, and brings them back: where a program
  /// checks its step.
  std::function<void()> save, restore;
  /// For checkpoints.
  std::function<WeightState(const at::Tensor &weight)> state;
  std::function<void(const at::Tensor &weight, const WeightState &)> setState;
  /// The most that the norm of all gradients may be, in which a weight of
  /// several places counts once; they are scaled down to it.
  std::optional<double> maxNorm{};
  std::optional<LossScale> scale{};
};

struct TorchOptions {
  /// Gradients are those of the mean of the losses over all microbatches of the
  /// program; otherwise of their sum.
  bool averageLosses = true;
  /// Copies of the pipeline, each with microbatches of its own: the mean is one
  /// over all.
  uint32_t replicas = 1;
  /// F keeps its input alone, and the backward runs it again.
  bool recompute = false;
  /// Where modules draw random numbers (dropout): each forward draws them from
  /// the seed, the step, its pipe, stage and microbatch, whatever the order of
  /// the actions; one at a time in a process. Needed for `recomputes` then.
  std::optional<uint64_t> seed;
  /// Where the modules compute; `make` puts them there. What goes to the host
  /// leaves a device other than the CPU asynchronously, into pinned memory.
  at::Device device = at::kCPU;
  /// What goes along an edge, as tensors without values (at::kMeta will do):
  /// for transports that carry bytes and must know their number, such as
  /// Nccl<Tensors> (Bytes.h). Then messages lie in one piece of memory.
  std::function<Tensors(uint8_t pipe, uint16_t from, uint16_t to)> shapes;
  /// By letters: further actions of the program, or what is to happen in place
  /// of the stage's own.
  std::map<std::string, TorchAction> actions;
  /// Called after each action that the stage performs.
  std::function<void(const ActionContext &)> afterEachAction;
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
/// time. The program must outlive it.
class TorchStage : public StageHooks {
public:
  using Value = Tensors;

  /// Makes the stages of the rank. Throws Error when the program has an action
  /// that nothing performs.
  TorchStage(const Program &program, uint32_t rank, Network network,
             const TorchOptions &options = {});
  TorchStage(TorchStage &&) noexcept;
  TorchStage &operator=(TorchStage &&) noexcept;
  ~TorchStage();

  Tensors forward(const ActionContext &work, const Inputs<Tensors> &inputs);
  std::vector<Tensors> backward(const ActionContext &work, Tensors *outputGrad);
  std::vector<Tensors> backward_input(const ActionContext &work,
                                      Tensors *outputGrad);
  void backward_weight(const ActionContext &work);
  void perform(const ActionContext &work);
  /// What autograd has saved for a microbatch goes to another rank, which
  /// keeps it, and comes back.
  Tensors moveOut(const ActionContext &work);
  void moveIn(const ActionContext &work, Tensors &&moved);
  void add(const ActionContext &work, Tensors &sum, const Tensors &gradient);
  size_t messageBytes(const Label &label);
  void release(const ActionContext &work);
  void fail(const std::string &text);
  bool overlap(const ActionContext &forward, const ActionContext &backward,
               const Half &runForward, const Half &runBackward);

  // What performs declared actions, for TorchOptions::actions too.

  /// Runs the forward again, and keeps its graph. Where the action `restores`
  /// the forward, that keeps its inputs alone.
  void recompute(const ActionContext &work);
  /// Lets go of the output; the backward needs none.
  void releaseOutput(const ActionContext &work);
  /// Lets go of what the backward has needed, if it is there still.
  void releaseInput(const ActionContext &work);
  /// Moves what autograd has saved, the inputs included, to the host.
  void offload(const ActionContext &work);
  /// The opposite.
  void reload(const ActionContext &work);
  /// Hands the gradients of the stage over, to be summed with those of other
  /// places of its weights (SharedWeights.h). Does not wait: waitForGradients()
  /// does.
  void reduceGradients(const ActionContext &work);
  /// Finishes sums, and moves the weights of the rank.
  void step(const ActionContext &work);
  /// Takes the step back if a gradient of some rank is not finite.
  void validate(const ActionContext &work);
  /// Waits until the gradients of the rank's weights are summed. For actions
  /// between the sum and the step.
  void waitForGradients();

  /// What step() calls, on the parameters() of this rank.
  void setOptimizer(OptimizerHooks update);
  const OptimizerHooks &update() const;
  /// Whether the weights have moved since beginStep(), were moved back, or
  /// stayed: a gradient was no number, and the update has a scale.
  enum class Step : uint8_t { Pending, Applied, RolledBack, Skipped };
  Step lastStep() const;
  /// The norm of all gradients of all ranks ahead of the last step, not scaled
  /// and not clipped; 0 where the update asks for none.
  double gradNorm() const;

  /// Of all stages of the rank, in the order of pipes and stages.
  const std::vector<Parameter> &parameters() const;
  /// The losses since the last call, not scaled; in the order they came.
  std::vector<Loss> takeLosses();
  /// Begins a step: forgets the gradients. Of several batches, whose gradients
  /// are added, all but the last leave out the actions that sum gradients, step
  /// and check the step.
  void beginStep(uint32_t numBatches = 1);
  /// Begins a further batch of the step.
  void beginBatch();
  /// Batches that have begun; random numbers depend on it.
  uint64_t numBatches() const;
  /// Graphs, or kept inputs, that were alive at one time since the last call.
  uint32_t takePeakActivations();

  const Program &program() const;
  uint32_t rank() const;
  /// By pipe and stage.
  const std::map<std::pair<uint8_t, uint16_t>, StageModule> &modules() const;

  /// What SharedWeights and checkpoints need beside.
  struct State;
  State &own() const { return *state; }

private:
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
StageModule stageFromModule(std::shared_ptr<Module> module,
                            const std::string &prefix) {
  StageModule stage;
  for (const auto &parameter : module->named_parameters())
    stage.parameters.push_back({prefix + parameter.key(), parameter.value()});
  for (const auto &buffer : module->named_buffers())
    stage.buffers.push_back({prefix + buffer.key(), buffer.value()});
  if constexpr (requires(Half half) { module->overlap(half, half); })
    stage.overlap = [module](const Half &forward, const Half &backward) {
      module->overlap(forward, backward);
    };
  stage.forward = [module](const Tensors &in) {
    return detail::callForward(*module, in);
  };
  return stage;
}

} // namespace ppcc::rt
