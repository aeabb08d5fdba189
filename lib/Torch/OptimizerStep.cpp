// How the weights of a rank move: sums, steps, what checks them.
#include "SharedReplicas.h"
#include "StageState.h"

#include "ppcc/Runtime/Error.h"

#include <ATen/ops/add.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <set>

using namespace ppcc::rt;

const std::vector<Parameter> &TorchStage::parameters() const {
  return state->parameters;
}

void TorchStage::setOptimizer(OptimizerHooks update) {
  state->update = std::move(update);
  if (state->needsNorm())
    checkStepIsBarrier(*this);
}

const OptimizerHooks &TorchStage::update() const { return state->update; }

TorchStage::Step TorchStage::lastStep() const { return state->lastStep; }

double TorchStage::gradNorm() const { return state->gradNorm; }

void TorchStage::beginStep(uint32_t numBatches) {
  ++state->batch;
  state->batchesLeft = numBatches;
  state->lastStep = Step::Pending;
  for (const Parameter &parameter : state->parameters)
    parameter.value.mutable_grad() = at::Tensor();
}

void TorchStage::beginBatch() {
  ++state->batch;
  --state->batchesLeft;
}

uint64_t TorchStage::numBatches() const { return state->batch; }

void TorchStage::reduceGradients(const ActionContext &work) {
  state->needSums().begin(work.pipe, work.stage);
}

void TorchStage::waitForGradients() {
  if (state->sums)
    state->sums->finish();
}

void TorchStage::step(const ActionContext &) {
  if (!state->update.step)
    throw std::runtime_error(
        "there is no optimizer: call TorchStage::setOptimizer");
  waitForGradients();
  if (state->has(ActionRole::ChecksStep))
    state->update.save();
  state->applyUpdate(
      state->needsNorm() ? state->allReduceSum(state->sumOfSquares()) : 0);
}

std::vector<Parameter> TorchStage::State::ownParameters() const {
  std::set<std::string> seen;
  std::vector<Parameter> result;
  for (const Parameter &one : parameters)
    if ((!sums || sums->isOwner(one.name)) && seen.insert(one.name).second)
      result.push_back(one);
  return result;
}

double TorchStage::State::sumOfSquares() const {
  at::Tensor all; // One question to the device, not one a weight.
  for (const Parameter &parameter : ownParameters())
    if (const at::Tensor &grad = parameter.value.grad(); grad.defined()) {
      at::Tensor one = at::linalg_vector_norm(grad, 2).to(at::kDouble).square();
      all = all.defined() ? at::add(all, one) : one;
    }
  return all.defined() ? all.item().toDouble() : 0;
}

void TorchStage::State::applyUpdate(double sumOfSquares) {
  if (!update.step)
    throw Error(concat("there is no optimizer for rank ", rank,
                       ": call TorchStage::setOptimizer"));
  double factor = update.scale ? 1 / update.scale->value : 1;
  gradNorm = std::sqrt(sumOfSquares) * factor;
  if (update.scale) {
    update.scale->endStep(std::isfinite(sumOfSquares));
    if (!std::isfinite(sumOfSquares)) {
      lastStep = Step::Skipped;
      return;
    }
  }
  if (update.maxNorm)
    factor *= std::min(1.0, *update.maxNorm / (gradNorm + 1e-6));
  at::NoGradGuard guard;
  std::set<const void *> seen;
  for (const Parameter &parameter : parameters)
    if (at::Tensor grad = parameter.value.grad();
        factor != 1 && grad.defined() &&
        seen.insert(grad.unsafeGetTensorImpl()).second)
      grad.mul_(factor);
  update.step();
  lastStep = Step::Applied;
}

void TorchStage::validate(const ActionContext &) {
  if (std::isfinite(state->allReduceSum(state->sumOfSquares())))
    return;
  if (state->lastStep == Step::Applied)
    state->update.restore();
  state->lastStep = Step::RolledBack;
}
