// What a rank's stages know: modules, weights, what forwards have kept.
#pragma once

#include "ComputeGuard.h"
#include "GradientReducer.h"
#include "Random.h"
#include "SavedTensors.h"
#include "Split.h"
#include "TensorLayout.h"

#include "ppcc/Runtime/Error.h"

#include <ATen/ops/full_like.h>

namespace ppcc::rt {

/// A stage of a pipe, and with a microbatch the key of what F keeps.
using StageKey = std::pair<uint8_t, uint16_t>;

inline bool isDifferentiable(const at::Tensor &tensor) {
  return tensor.is_floating_point() || tensor.is_complex();
}

/// What F keeps for a microbatch.
struct Activation {
  Tensors inputs;                 ///< Leaves of the graph.
  std::vector<size_t> numTensors; ///< Of each stage that is read.
  Tensors outputs;                ///< Of the last stage: the loss. Until they
                                  ///< are released.
  Roots roots;                    ///< Where the graph begins.
  Tensors outputGrads;            ///< Until W, where I had nothing to do.
  SavedTensors saved;             ///< Where an action moves them.
  DeferredWeights weights;
  bool hasGraph = false, isSplit = false;

  void keepGraph(Tensors &&made) {
    roots = Roots(made);
    saved.keepAlive(inputs);
    outputs = std::move(made);
    hasGraph = true;
  }
};

struct TorchStage::State {
  const Program &program;
  uint32_t rank;
  Network network;
  TorchOptions options;
  double lossWeight = 1;
  std::map<StageKey, StageModule> modules{};
  std::vector<Parameter> parameters{};
  std::vector<TorchAction> actions{}; ///< By kind.
  std::shared_ptr<GradientReducer> sums{};
  uint32_t globalRank = rank;
  OptimizerHooks update{};
  Step lastStep = Step::Pending;
  double gradNorm = 0;
  uint64_t batch = 0;
  uint32_t batchesLeft = 1; ///< Of this step, with this one.

  std::mutex mutex{}; ///< Of what follows.
  std::map<std::pair<StageKey, uint32_t>, Activation> activations{};
  std::map<std::tuple<uint8_t, uint16_t, uint16_t>, TensorLayout> layouts{};
  /// Of other ranks: what autograd saved there.
  std::map<std::pair<StageKey, uint32_t>, Tensors> storedForPeers{};
  uint32_t peak = 0;
  std::vector<std::pair<uint32_t, at::Tensor>> losses{}; ///< Not read yet.

  bool has(ActionRole role) const {
    return std::ranges::find(actions, role, &TorchAction::role) !=
           actions.end();
  }

  /// The weights that count on this rank, of those that several ranks have.
  std::vector<Parameter> ownParameters() const;
  /// Whether the update asks for the gradients of other ranks.
  bool needsNorm() const { return update.maxNorm || update.scale; }
  /// The squares of the gradients of those weights, summed: finite if all are.
  double sumOfSquares() const;
  /// A step of the update; `squares` are those of all ranks.
  void applyUpdate(double sumOfSquares);

  void keep(const ActionContext &work, Activation &&kept) {
    std::lock_guard lock(mutex);
    activations.insert_or_assign(keyOf(work), std::move(kept));
    peak = std::max(peak, static_cast<uint32_t>(activations.size()));
  }
  /// Null when it has been released.
  Activation *find(const ActionContext &work) {
    std::lock_guard lock(mutex);
    auto found = activations.find(keyOf(work));
    return found == activations.end() ? nullptr : &found->second;
  }
  Activation &activation(const ActionContext &work) {
    if (Activation *found = find(work))
      return *found;
    throw std::runtime_error("what its forward kept has been released");
  }
  /// For what ranks do together.
  GradientReducer &needSums() const {
    if (!sums)
      throw std::runtime_error("the stage does not know those of other ranks: "
                               "make SharedWeights of all first");
    return *sums;
  }
  /// Over all ranks.
  double allReduceSum(double value) const {
    return sums || program.numRanks != 1 ? needSums().allReduceSum(value)
                                         : value;
  }
  static std::pair<StageKey, uint32_t> keyOf(const ActionContext &work) {
    return {StageKey(work.pipe, work.stage), work.microbatch};
  }
  void afterAction(const ActionContext &work) const {
    if (options.afterEachAction)
      options.afterEachAction(work);
  }
  const StageModule &module(const ActionContext &work) const {
    return modules.at({work.pipe, work.stage});
  }

  /// Runs the module, and after the last stage the loss.
  Tensors compute(const ActionContext &work, const Tensors &inputs) const {
    return rt::compute([&] { return computeLoss(work, inputs); });
  }
  Tensors computeLoss(const ActionContext &work, const Tensors &inputs) const {
    Tensors outputs = module(work).forward(inputs);
    if (!work.isLast())
      return outputs;
    at::Tensor loss = network.loss(outputs, work.microbatch);
    if (loss.numel() != 1)
      throw std::runtime_error(
          concat("the loss must be one number, but has ", loss.numel()));
    return {loss};
  }

  /// `runsAgain`: it must be possible to do the same once more.
  Tensors runSeeded(const ActionContext &work, const Tensors &inputs,
                    bool runsAgain) const {
    if (options.seed) {
      SeededRng drawing(options.device,
                        splitMix64({*options.seed, batch, work.pipe, work.stage,
                                    work.microbatch}));
      return compute(work, inputs);
    }
    if (!runsAgain)
      return compute(work, inputs);
    Generators generators(options.device);
    Tensors before = generators.states();
    Tensors outputs = compute(work, inputs);
    if (!generators.match(before))
      throw std::runtime_error(
          "the module draws random numbers, and is to run again for the "
          "backward: set TorchOptions::seed");
    return outputs;
  }

  /// The leaf that a tensor becomes in the graph of this stage.
  static at::Tensor leaf(const at::Tensor &tensor, bool needsGrad) {
    if (!tensor.defined())
      return tensor;
    at::Tensor result = tensor.detach();
    if (needsGrad && isDifferentiable(result))
      result.set_requires_grad(true);
    return result;
  }

  /// Runs the module with a graph.
  Tensors graphOf(const ActionContext &work, const Tensors &inputs,
                  bool runsAgain, SavedTensors &saved) const {
    std::optional<SavedTensors::Recording> noting;
    if (has(ActionRole::MovesSaved))
      noting.emplace(saved);
    return runSeeded(work, inputs, runsAgain);
  }
  void makeGraph(const ActionContext &work, Activation &kept) const {
    if (!kept.hasGraph)
      kept.keepGraph(graphOf(work, kept.inputs, false, kept.saved));
  }
  /// For an action of the backward.
  void needGraph(const ActionContext &work, Activation &kept) const {
    if (options.recompute)
      makeGraph(work, kept);
    if (!kept.hasGraph)
      throw std::runtime_error("its forward kept the inputs alone, and nothing "
                               "has restored the rest");
  }

  // What goes to other ranks in one piece of memory.

  /// Of what goes along an edge, from stage `from`: an output where that comes
  /// first, else a gradient. Null where nobody has given it.
  const TensorLayout *layoutOf(uint8_t pipe, uint16_t from, uint16_t to) {
    if (!options.shapes)
      return nullptr;
    std::lock_guard lock(mutex);
    auto [found, isNew] = layouts.try_emplace({pipe, from, to});
    if (isNew) {
      bool isGradient = from > to;
      Tensors shapes =
          options.shapes(pipe, std::min(from, to), std::max(from, to));
      for (at::Tensor &shape : shapes)
        if (isGradient && !isDifferentiable(shape))
          shape = at::Tensor();
      found->second = TensorLayout(shapes);
    }
    return &found->second;
  }
  /// What has come along an edge.
  Tensors unpackMessage(Tensors value, uint8_t pipe, uint16_t from,
                        uint16_t to) {
    const TensorLayout *layout = layoutOf(pipe, from, to);
    return layout && layout->isPacked(value) ? layout->unpack(value[0])
                                             : std::move(value);
  }
  /// What is to go along an edge, if it leaves the rank.
  Tensors packMessage(Tensors value, uint8_t pipe, uint16_t from, uint16_t to) {
    if (program.pipes[pipe].rankOfStage[to] == rank)
      return value;
    const TensorLayout *layout = layoutOf(pipe, from, to);
    if (!layout)
      return value;
    if (*layout != TensorLayout(value))
      throw std::runtime_error(concat("it gives stage ", to, ' ',
                                      TensorLayout(value).describe(), " where ",
                                      layout->describe(), " is expected"));
    return layout->unpack(layout->pack(value));
  }
  std::vector<uint16_t> neighbours(const ActionContext &work,
                                   bool readers) const {
    return rt::neighbours(program.pipes[work.pipe], work.stage, readers);
  }
  /// The gradient of the output, which has come from a reader.
  void unpackGradient(const ActionContext &work, Tensors *gradient) {
    if (gradient && options.shapes)
      *gradient = unpackMessage(std::move(*gradient), work.pipe,
                                neighbours(work, true).front(), work.stage);
  }
  std::vector<Tensors> packGradients(const ActionContext &work,
                                     std::vector<Tensors> &&gradients) {
    if (!options.shapes || work.isFirst())
      return std::move(gradients);
    std::vector<uint16_t> sources = neighbours(work, false);
    for (size_t i = 0; i != gradients.size(); ++i)
      gradients[i] = packMessage(std::move(gradients[i]), work.pipe, work.stage,
                                 sources[i]);
    return std::move(gradients);
  }

  /// The gradients for the outputs of a stage; what the loss counts at the
  /// last.
  Tensors outputGrads(const ActionContext &work, const Activation &kept,
                      Tensors *given) const {
    if (given)
      return std::move(*given);
    if (work.isLast()) {
      double scale = update.scale ? update.scale->value : 1;
      return {at::full_like(kept.outputs.front(), lossWeight * scale)};
    }
    return Tensors(kept.roots.size());
  }

  /// The gradients of the inputs, for each stage that was read.
  static std::vector<Tensors> bySource(const Activation &kept,
                                       Tensors &&grads) {
    std::vector<Tensors> result;
    auto next = grads.begin();
    for (size_t count : kept.numTensors) {
      result.emplace_back(std::make_move_iterator(next),
                          std::make_move_iterator(next + count));
      next += count;
    }
    return result;
  }
};

} // namespace ppcc::rt
