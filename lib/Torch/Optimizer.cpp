#include "ppcc/Torch/Optimizer.h"

#include <c10/core/GradMode.h>
#include <torch/serialize.h>

#include <sstream>

using namespace ppcc::rt;

namespace {

/// An optimizer and what it had before its last step.
struct Kept {
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
  template <class Do> void forEachWeight(Do act) {
    for (torch::optim::OptimizerParamGroup &group : optimizer->param_groups())
      for (at::Tensor &weight : group.params())
        act(weight);
  }
};

} // namespace

WeightUpdate
ppcc::rt::updateBy(std::shared_ptr<torch::optim::Optimizer> optimizer) {
  auto kept = std::make_shared<Kept>(Kept{std::move(optimizer), {}, {}});
  return {[kept] { kept->optimizer->step(); }, [kept] { kept->save(); },
          [kept] { kept->restore(); }};
}
