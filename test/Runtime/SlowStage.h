// A stage that takes its time, for runs that are held against their plan.
#pragma once

#include "CompareRuns.h"

#include <thread>

namespace test {

/// Stage s sleeps (1 + 4 s) * 3 ms at least for a forward, and as long for each
/// half of a backward.
struct SlowStage : NetworkStage {
  Value forward(const rt::ActionContext &work,
                const rt::Inputs<Value> &inputs) {
    sleep(work);
    return NetworkStage::forward(work, inputs);
  }
  std::vector<Value> backward(const rt::ActionContext &work,
                              Value *outputGrad) {
    sleep(work, 2);
    return NetworkStage::backward(work, outputGrad);
  }
  std::vector<Value> backward_input(const rt::ActionContext &work,
                                    Value *outputGrad) {
    sleep(work);
    return NetworkStage::backward_input(work, outputGrad);
  }
  void backward_weight(const rt::ActionContext &work) {
    sleep(work);
    NetworkStage::backward_weight(work);
  }

private:
  static void sleep(const rt::ActionContext &work, int times = 1) {
    std::this_thread::sleep_for(times * (1 + 4 * work.stage) *
                                std::chrono::milliseconds(3));
  }
};

} // namespace test
