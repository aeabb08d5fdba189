// Lets a stage compute an action.
#pragma once

#include "ppcc/Runtime/Stage.h"
#include "ppcc/Runtime/Wiring.h"

#include <exception>
#include <stdexcept>

namespace ppcc::rt {

/// An action that a stage computes: what it reads, and what it made.
template <Stage S> struct Call {
  using Value = typename S::Value;

  Work work;
  const Row *row;
  const Operation *does;
  std::vector<Held<Value> *> inputs;
  Value result{};             ///< The output, or the gradient of the input;
  std::vector<Value> grads;   ///< empty, or instead one for each input.
  std::exception_ptr failure; ///< Of a call in another thread.
  int64_t start = 0, end = 0; ///< For the trace.

  bool isDeclared() const {
    return does->kind->kindClass == KindClass::Declared;
  }

  /// Calls the function of the stage. Throws what that throws, and
  /// std::runtime_error when the stage has none.
  void run(S &stage) {
    if (isDeclared()) {
      if constexpr (requires { stage.perform(work); })
        return stage.perform(work);
      throw std::runtime_error("it has no function `perform`");
    }
    switch (does->kind->defines) {
    case slot::Output:
      result = stage.forward(work, Inputs<Value>(inputs));
      break;
    case slot::InputGrad | slot::WeightGrad:
      if constexpr (requires { stage.backward(work, nullptr); })
        return keepGrads(stage.backward(work, gradient(stage)));
      throw std::runtime_error("it has no function `backward`");
    case slot::InputGrad:
      if constexpr (requires { stage.backward_input(work, nullptr); })
        return keepGrads(stage.backward_input(work, gradient(stage)));
      throw std::runtime_error("it has no function `backward_input`");
    case slot::WeightGrad:
      if constexpr (requires { stage.backward_weight(work); })
        return stage.backward_weight(work);
      throw std::runtime_error("it has no function `backward_weight`");
    }
  }

  /// What the i-th source of the stage gets from a backward; once each, in
  /// their order.
  Value takeGrad(size_t i) {
    if (!grads.empty())
      return std::move(grads[i]);
    if constexpr (std::is_copy_constructible_v<Value>)
      if (i + 1 != does->stage->inputGrads.size())
        return result;
    return std::move(result);
  }

private:
  /// The gradient of the output of the stage, summed over its readers.
  Value *gradient(S &stage) {
    if (inputs.empty())
      return nullptr;
    Value &sum = inputs.front()->value;
    for (size_t i = 1; i < inputs.size(); ++i)
      add(stage, sum, inputs[i]->value);
    return &sum;
  }

  void add(S &stage, Value &sum, const Value &gradient) {
    if constexpr (requires { stage.add(work, sum, gradient); })
      stage.add(work, sum, gradient);
    else if constexpr (requires { stage.add(sum, gradient); })
      stage.add(sum, gradient);
    else if constexpr (requires { sum += gradient; })
      sum += gradient;
    else
      throw std::runtime_error("it has no function `add`");
  }

  void keepGrads(Value &&gradient) { result = std::move(gradient); }
  void keepGrads(std::vector<Value> &&gradients) {
    size_t wanted = does->stage->inputGrads.size();
    if (gradients.size() != wanted)
      throw std::runtime_error(std::to_string(gradients.size()) +
                               " gradients for " + std::to_string(wanted) +
                               " inputs");
    grads = std::move(gradients);
  }
};

} // namespace ppcc::rt
