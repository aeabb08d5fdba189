#include "ppcc/Torch/Stage.h"

#include "StageState.h"

#include "ppcc/Runtime/Error.h"

#include <ATen/ops/add.h>
#include <c10/core/GradMode.h>

using namespace ppcc::rt;

namespace {

/// What performs the actions of std.pp.
const std::map<std::string, TorchAction> &knownActions() {
  static const std::map<std::string, TorchAction> all = {
#define TORCH_ACTION(Letters, Function, Role)                                  \
  {#Letters, {&TorchStage::Function, ActionRole::Role}},
#include "Actions.def"
  };
  return all;
}

TorchAction actionFor(const std::string &mnemonic,
                      const TorchOptions &options) {
  if (auto found = options.actions.find(mnemonic);
      found != options.actions.end())
    return found->second;
  if (auto found = knownActions().find(mnemonic); found != knownActions().end())
    return found->second;
  throw Error("the program has an action `" + mnemonic +
              "`, which the stages of LibTorch do not know: name a function "
              "for it in TorchOptions::actions");
}

} // namespace

TorchStage::TorchStage(const Program &program, uint32_t rank, Network network,
                       const TorchOptions &options)
    : state(new State{program, rank, std::move(network), options}) {
  for (const Kind &kind : program.kinds)
    state->actions.push_back(kind.isMove()
                                 ? TorchAction{{}, ActionRole::MovesSaved}
                             : kind.kindClass == KindClass::Declared
                                 ? actionFor(kind.mnemonic, options)
                                 : TorchAction());
  uint64_t microbatches = 0;
  for (uint8_t p = 0; p != program.pipes.size; ++p) {
    const Pipe &pipe = program.pipes[p];
    microbatches += pipe.numMicrobatches;
    for (uint32_t s = 0; s != pipe.numStages(); ++s) {
      if (pipe.rankOfStage[s] != rank)
        continue;
      auto stage = static_cast<uint16_t>(s);
      StageModule &module = state->modules[{p, stage}];
      module = state->network.make(p, stage);
      for (const Parameter &parameter : module.parameters)
        state->parameters.push_back(parameter);
    }
  }
  if (options.averageLosses)
    state->lossWeight = 1 / (double(microbatches) * options.replicas);
}
TorchStage::TorchStage(TorchStage &&) noexcept = default;
TorchStage &TorchStage::operator=(TorchStage &&) noexcept = default;
TorchStage::~TorchStage() = default;

Tensors TorchStage::forward(const ActionContext &work,
                            const Inputs<Tensors> &inputs) {
  bool hasBackward = work.program->hasBackward;
  Activation kept;
  if (work.isFirst())
    for (const at::Tensor &tensor : state->network.input(work.microbatch))
      kept.inputs.push_back(State::leaf(tensor, false));
  std::vector<uint16_t> sources = state->neighbours(work, false);
  for (size_t i = 0; i != inputs.size(); ++i) {
    Tensors input =
        state->unpackMessage(inputs.take(i), work.pipe, sources[i], work.stage);
    kept.numTensors.push_back(input.size());
    for (const at::Tensor &tensor : input)
      kept.inputs.push_back(State::leaf(tensor, hasBackward));
  }

  bool runsAgain = state->options.recompute || work.isRestored;
  bool keepsGraph = hasBackward && !runsAgain;
  c10::AutoGradMode grads(keepsGraph);
  Tensors outputs = keepsGraph
                        ? state->graphOf(work, kept.inputs, false, kept.saved)
                        : state->runSeeded(work, kept.inputs, hasBackward);
  if (work.isLast()) {
    std::lock_guard lock(state->mutex);
    // To read it here would wait for the device.
    state->losses.push_back({work.microbatch, outputs.front().detach()});
  }
  Tensors result;
  if (!work.isLast())
    for (const at::Tensor &tensor : outputs)
      result.push_back(tensor.defined() ? tensor.detach() : tensor);
  if (keepsGraph)
    kept.keepGraph(std::move(outputs));
  outputs.clear();
  if (hasBackward)
    state->keep(work, std::move(kept));
  for (uint16_t reader : state->neighbours(work, true))
    if (state->options.shapes)
      result =
          state->packMessage(std::move(result), work.pipe, work.stage, reader);
  state->afterAction(work);
  return result;
}

std::vector<Tensors> TorchStage::backward(const ActionContext &work,
                                          Tensors *outputGrad) {
  Activation &kept = state->activation(work);
  state->needGraph(work, kept);
  state->unpackGradient(work, outputGrad);
  Tensors grads = state->outputGrads(work, kept, outputGrad);
  Backward whole{kept.roots, grads, kept.inputs};
  std::vector<Tensors> result = state->packGradients(
      work, State::bySource(kept, compute([&] { return whole.runFull(); })));
  state->afterAction(work);
  return result;
}

std::vector<Tensors> TorchStage::backward_input(const ActionContext &work,
                                                Tensors *outputGrad) {
  Activation &kept = state->activation(work);
  state->unpackGradient(work, outputGrad);
  bool hasWork = false;
  for (const at::Tensor &input : kept.inputs)
    hasWork |= input.defined() && input.requires_grad();
  if (!hasWork) {
    if (outputGrad)
      kept.outputGrads = std::move(*outputGrad);
    state->afterAction(work);
    return state->packGradients(
        work, State::bySource(kept, Tensors(kept.inputs.size())));
  }
  state->needGraph(work, kept);
  Tensors grads = state->outputGrads(work, kept, outputGrad);
  Tensors result = ::compute([&] {
    return kept.weights.runInputBackward({kept.roots, grads, kept.inputs});
  });
  kept.isSplit = true;
  kept.roots = Roots();
  kept.outputs.clear();
  kept.saved.release(kept.inputs);
  state->afterAction(work);
  return state->packGradients(work, State::bySource(kept, std::move(result)));
}

void TorchStage::backward_weight(const ActionContext &work) {
  Activation &kept = state->activation(work);
  if (kept.isSplit) {
    compute([&] { kept.weights.run(); });
    return state->afterAction(work);
  }
  state->needGraph(work, kept);
  Tensors grads = state->outputGrads(
      work, kept, kept.outputGrads.empty() ? nullptr : &kept.outputGrads);
  Backward whole{kept.roots, grads, kept.inputs};
  compute([&] { whole.runFull(); });
  state->afterAction(work);
}

bool TorchStage::overlap(const ActionContext &forward, const ActionContext &,
                         const Half &runForward, const Half &runBackward) {
  const StageModule &module = state->module(forward);
  // With a seed one computes at a time, to its end.
  if (!module.overlap || state->options.seed)
    return false;
  module.overlap(runForward, runBackward);
  return true;
}

void TorchStage::perform(const ActionContext &work) {
  const TorchAction &action = state->actions[work.kind];
  if (state->batchesLeft == 1 || action.role < ActionRole::ReducesGradients)
    action.perform(*this, work);
  state->afterAction(work);
}

Tensors TorchStage::moveOut(const ActionContext &work) {
  if (!work.hasMicrobatch())
    throw std::runtime_error("the stages of LibTorch move what microbatches "
                             "hold between ranks, and nothing else");
  Tensors moved;
  if (state->modules.contains({work.pipe, work.stage})) {
    offload(work);
    moved = state->activation(work).saved.releaseHostMemory();
  } else {
    std::lock_guard lock(state->mutex);
    auto guest = state->storedForPeers.extract(State::keyOf(work));
    if (guest.empty())
      throw std::runtime_error("it has no such activation to restore");
    moved = std::move(guest.mapped());
  }
  state->afterAction(work);
  return moved;
}

void TorchStage::moveIn(const ActionContext &work, Tensors &&moved) {
  if (state->modules.contains({work.pipe, work.stage})) {
    state->activation(work).saved.adoptHostMemory(std::move(moved));
    reload(work);
  } else {
    std::lock_guard lock(state->mutex);
    state->storedForPeers.insert_or_assign(State::keyOf(work),
                                           std::move(moved));
  }
  state->afterAction(work);
}

void TorchStage::recompute(const ActionContext &work) {
  state->makeGraph(work, state->activation(work));
}

void TorchStage::releaseOutput(const ActionContext &work) {
  if (work.isLast())
    throw std::runtime_error("the backward begins with the output of the last "
                             "stage, which is its loss");
  state->activation(work).outputs.clear();
}

void TorchStage::releaseInput(const ActionContext &work) { release(work); }

void TorchStage::offload(const ActionContext &work) {
  Activation &kept = state->activation(work);
  if (!work.isLast())
    kept.outputs.clear();
  Tensors weights;
  for (const Parameter &parameter : state->module(work).parameters)
    weights.push_back(parameter.value);
  kept.saved.offload(kept.inputs, weights);
}

void TorchStage::reload(const ActionContext &work) {
  state->activation(work).saved.reload();
}

void TorchStage::fail(const std::string &text) {
  if (state->sums)
    state->sums->fail(text);
}

size_t TorchStage::messageBytes(const Label &label) {
  const TensorLayout *layout =
      state->layoutOf(label.pipe, label.from, label.to);
  return layout ? static_cast<size_t>(layout->numBytes()) : 0;
}

void TorchStage::add(const ActionContext &work, Tensors &sum,
                     const Tensors &other) {
  Tensors gradient = other;
  // One layout is that of all readers.
  for (Tensors *one : {&sum, &gradient})
    state->unpackGradient(work, one);
  if (sum.size() != gradient.size())
    throw std::runtime_error(concat("readers give ", sum.size(), " and ",
                                    gradient.size(),
                                    " gradients of one output"));
  for (size_t i = 0; i != sum.size(); ++i)
    if (!sum[i].defined())
      sum[i] = gradient[i];
    else if (gradient[i].defined())
      sum[i] = at::add(sum[i], gradient[i]);
}

void TorchStage::release(const ActionContext &work) {
  std::lock_guard lock(state->mutex);
  state->activations.erase({StageKey(work.pipe, work.stage), work.microbatch});
}

std::vector<Loss> TorchStage::takeLosses() {
  std::vector<Loss> result;
  for (auto &[microbatch, loss] : std::exchange(state->losses, {}))
    result.push_back({microbatch, loss.item().toDouble()});
  return result;
}

const Program &TorchStage::program() const { return state->program; }

uint32_t TorchStage::rank() const { return state->rank; }

const std::map<StageKey, StageModule> &TorchStage::modules() const {
  return state->modules;
}

uint32_t TorchStage::takePeakActivations() {
  return std::exchange(state->peak, 0);
}
