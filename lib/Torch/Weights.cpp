// How the weights of a rank move: sums, steps, what checks them.
#include "Places.h"
#include "StageState.h"

#include "ppcc/Runtime/Error.h"

#include <ATen/ops/add.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <c10/core/GradMode.h>

#include <cmath>

using namespace ppcc::rt;

const std::vector<Parameter> &TorchStage::parameters() const {
  return state->parameters;
}

void TorchStage::setUpdate(WeightUpdate update) {
  state->update = std::move(update);
  if (needsNorm())
    checkStepsMeet(*this);
}

const WeightUpdate &TorchStage::update() const { return state->update; }

TorchStage::Step TorchStage::lastStep() const { return state->lastStep; }

double TorchStage::lastNorm() const { return state->lastNorm; }

void TorchStage::setSums(std::shared_ptr<GradientSums> sums, uint32_t rank) {
  state->sums = std::move(sums);
  state->rankInSums = rank;
}

uint32_t TorchStage::rankInSums() const { return state->rankInSums; }

void TorchStage::beginStep(uint32_t numBatches) {
  ++state->batch;
  state->batchesLeft = numBatches;
  state->lastStep = Step::NotYet;
  for (const Parameter &parameter : state->parameters)
    parameter.value.mutable_grad() = at::Tensor();
}

void TorchStage::beginBatch() {
  ++state->batch;
  --state->batchesLeft;
}

uint64_t TorchStage::numBatches() const { return state->batch; }

void TorchStage::resume(uint64_t numBatches,
                        const std::optional<LossScale> &scale) {
  state->batch = numBatches;
  state->update.scale = scale;
}

void TorchStage::sumGradients(const Work &work) {
  state->needSums().begin(work.pipe, work.stage);
}

void TorchStage::finishSums() {
  if (state->sums)
    state->sums->finish();
}

void TorchStage::step(const Work &) {
  if (!state->update.step)
    throw std::runtime_error(
        "there is nothing to move the weights: call TorchStage::setUpdate");
  finishSums();
  if (state->has(ActionRole::ChecksStep))
    state->update.save();
  moveWeights(needsNorm() ? state->total(squares()) : 0);
}

std::vector<Parameter> TorchStage::ownParameters() const {
  std::set<std::string> seen;
  std::vector<Parameter> result;
  for (const Parameter &one : state->parameters)
    if ((!state->sums || state->sums->owns(one.name)) &&
        seen.insert(one.name).second)
      result.push_back(one);
  return result;
}

double TorchStage::squares() const {
  at::Tensor all; // One question to the device, not one a weight.
  for (const Parameter &parameter : ownParameters())
    if (const at::Tensor &grad = parameter.value.grad(); grad.defined()) {
      at::Tensor one = at::linalg_vector_norm(grad, 2).to(at::kDouble).square();
      all = all.defined() ? at::add(all, one) : one;
    }
  return all.defined() ? all.item().toDouble() : 0;
}

bool TorchStage::needsNorm() const {
  return state->update.maxNorm || state->update.scale;
}

void TorchStage::moveWeights(double squares) {
  WeightUpdate &update = state->update;
  if (!update.step)
    throw Error("there is nothing to move the weights of rank " +
                std::to_string(state->rank) + ": call TorchStage::setUpdate");
  double factor = update.scale ? 1 / update.scale->value : 1;
  state->lastNorm = std::sqrt(squares) * factor;
  if (update.scale) {
    update.scale->endStep(std::isfinite(squares));
    if (!std::isfinite(squares)) {
      state->lastStep = Step::LeftOut;
      return;
    }
  }
  if (update.maxNorm)
    factor *= std::min(1.0, *update.maxNorm / (state->lastNorm + 1e-6));
  at::NoGradGuard guard;
  std::set<const void *> seen;
  for (const Parameter &parameter : state->parameters)
    if (at::Tensor grad = parameter.value.grad();
        factor != 1 && grad.defined() &&
        seen.insert(grad.unsafeGetTensorImpl()).second)
      grad.mul_(factor);
  update.step();
  state->lastStep = Step::Done;
}

void TorchStage::validate(const Work &) {
  if (std::isfinite(state->total(squares())))
    return;
  if (state->lastStep == Step::Done)
    state->update.restore();
  state->lastStep = Step::TakenBack;
}
