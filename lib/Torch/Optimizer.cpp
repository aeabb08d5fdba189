#include "ppcc/Torch/Optimizer.h"

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/serialize.h>

#include <sstream>

using namespace ppcc::rt;

namespace {

/// Of the states of an optimizer. A template: LibTorch 2 has another key.
auto find(auto &states, const at::Tensor &weight) {
  using Key = std::decay_t<decltype(states.begin()->first)>;
  at::TensorImpl *impl = weight.unsafeGetTensorImpl();
  if constexpr (std::is_same_v<Key, std::string>)
    return states.find(c10::guts::to_string(impl));
  else
    return states.find(static_cast<Key>(impl));
}

/// An optimizer and what it had before its last step.
struct Snapshot {
  std::shared_ptr<torch::optim::Optimizer> optimizer;
  Tensors weights;
  std::string state;

  void save() {
    at::NoGradGuard guard;
    weights.clear();
    forEachWeight(
        [&](at::Tensor &weight) { weights.push_back(weight.clone()); });
    std::ostringstream out;
    torch::save(*optimizer, out);
    state = out.str();
  }
  void restore() {
    at::NoGradGuard guard;
    auto old = weights.begin();
    forEachWeight([&](at::Tensor &weight) { weight.copy_(*old++); });
    std::istringstream in(state);
    torch::load(*optimizer, in);
  }
  template <class Do> void forEachWeight(Do act) const {
    for (torch::optim::OptimizerParamGroup &group : optimizer->param_groups())
      for (at::Tensor &weight : group.params())
        act(weight);
  }

  // What is kept for one weight goes through an archive: only that knows what
  // there is in any optimizer.

  WeightState stateOf(const at::Tensor &weight) const {
    WeightState result;
    auto found = find(optimizer->state(), weight);
    if (found == optimizer->state().end())
      return result;
    torch::serialize::OutputArchive out;
    found->second->serialize(out);
    torch::serialize::InputArchive in = reread(out);
    for (const std::string &key : in.keys()) {
      c10::IValue value;
      in.read(key, value);
      result[key] = value.isTensor()
                        ? value.toTensor()
                        : at::scalar_tensor(value.toInt(), at::kLong);
    }
    return result;
  }
  void setStateOf(const at::Tensor &weight, const WeightState &state) {
    auto found = find(optimizer->state(), weight);
    if (found == optimizer->state().end()) {
      makeStates();
      found = find(optimizer->state(), weight);
    }
    if (state.empty() && found != optimizer->state().end())
      optimizer->state().erase(found);
    if (state.empty())
      return;
    torch::serialize::OutputArchive out;
    for (const auto &[key, value] : state)
      if (value.dim() == 0 && value.scalar_type() == at::kLong)
        out.write(key, c10::IValue(value.item().toLong()));
      else
        out.write(key, c10::IValue(value.to(weight.device())));
    torch::serialize::InputArchive in = reread(out);
    found->second->serialize(in);
  }

private:
  /// Only a step makes them; one without gradients, of weights that are about
  /// to be read.
  void makeStates() {
    forEachWeight([](at::Tensor &weight) {
      weight.mutable_grad() = at::zeros_like(weight);
    });
    optimizer->step();
    forEachWeight(
        [](at::Tensor &weight) { weight.mutable_grad() = at::Tensor(); });
  }
  static torch::serialize::InputArchive
  reread(torch::serialize::OutputArchive &out) {
    std::stringstream bytes;
    out.save_to(bytes);
    torch::serialize::InputArchive in;
    in.load_from(bytes);
    return in;
  }
};

} // namespace

OptimizerHooks
ppcc::rt::makeUpdate(std::shared_ptr<torch::optim::Optimizer> optimizer) {
  auto kept = std::make_shared<Snapshot>();
  kept->optimizer = std::move(optimizer);
  return {[kept] { kept->optimizer->step(); }, [kept] { kept->save(); },
          [kept] { kept->restore(); },
          [kept](const at::Tensor &weight) { return kept->stateOf(weight); },
          [kept](const at::Tensor &weight, const WeightState &state) {
            kept->setStateOf(weight, state);
          }};
}
