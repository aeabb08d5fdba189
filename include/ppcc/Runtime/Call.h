// Lets a stage compute an action.
#pragma once

#include "ppcc/Runtime/Link.h"
#include "ppcc/Runtime/Stage.h"

#include <exception>
#include <stdexcept>

namespace ppcc::rt {

/// An action that a stage computes: what it reads, and what it makes.
template <Stage S> struct Call {
  using Value = typename S::Value;

  Call(const Program &program, uint32_t rank, const Linked &linked)
      : found(linked.mostEdges) {
    work.program = &program;
    work.rank = rank;
  }
  /// The values lie in `cells`.
  void begin(const Operation &action, const Role &doing, uint32_t microbatch,
             uint16_t lane, Held<Value> *cells) {
    operation = &action;
    role = &doing;
    work.pipe = role->label.pipe;
    work.kind = role->number;
    work.stage = role->label.from;
    work.microbatch = microbatch;
    work.row = action.row;
    work.lane = lane;
    work.isRestored = action.isRestored;
    Held<Value> **into = found.data();
    auto find = [&](const Ring *ring, const Ring *end) {
      Held<Value> **begin = into;
      for (; ring != end; ++ring)
        *into++ = cells + ring->at(microbatch);
      return std::span(begin, into);
    };
    inputs = find(role->reads, role->makes);
    outputs = find(role->makes, role->end);
  }

  Work work;
  const Operation *operation = nullptr;
  const Role *role = nullptr;
  std::span<Held<Value> *> inputs;
  /// The cell of the output, or of the gradient for each input.
  std::span<Held<Value> *> outputs;
  Value unread{}; ///< What it made for nobody, or moves between ranks.
  std::exception_ptr failure; ///< Of a call in another thread.
  int64_t start = 0, end = 0; ///< For the trace.

  bool isDeclared() const { return operation->opcode >= Opcode::Declared; }

  /// Calls the function of the stage. Throws what that throws, and
  /// std::runtime_error when the stage has none.
  void run(S &stage) {
    switch (operation->opcode) {
    case Opcode::Forward:
      return keepOutput(stage.forward(work, Inputs<Value>(inputs)));
    case Opcode::Backward:
      if constexpr (requires { stage.backward(work, nullptr); })
        return keepGrads(stage.backward(work, gradient(stage)));
      throw std::runtime_error("it has no function `backward`");
    case Opcode::BackwardInput:
      if constexpr (requires { stage.backward_input(work, nullptr); })
        return keepGrads(stage.backward_input(work, gradient(stage)));
      throw std::runtime_error("it has no function `backward_input`");
    case Opcode::BackwardWeight:
      if constexpr (requires { stage.backward_weight(work); })
        return stage.backward_weight(work);
      throw std::runtime_error("it has no function `backward_weight`");
    case Opcode::Give:
      if constexpr (requires { unread = stage.give(work); })
        return void(unread = stage.give(work));
      throw std::runtime_error("it has no function `give`");
    case Opcode::Take:
      if constexpr (requires { stage.take(work, std::move(unread)); })
        return stage.take(work, std::move(unread));
      throw std::runtime_error("it has no function `take`");
    default:
      if constexpr (requires { stage.perform(work); })
        return stage.perform(work);
      throw std::runtime_error("it has no function `perform`");
    }
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

  void keep(Held<Value> &held, Value &&value) {
    held.readers = role->readers;
    held.value = std::move(value);
  }
  void keepOutput(Value &&output) {
    if (outputs.empty())
      unread = std::move(output);
    else
      keep(*outputs.front(), std::move(output));
  }
  /// One for all sources of the stage: each gets a copy, the last the value.
  void keepGrads(Value &&gradient) {
    if (outputs.empty()) {
      unread = std::move(gradient);
      return;
    }
    if constexpr (std::is_copy_constructible_v<Value>)
      for (size_t i = 0; i + 1 != outputs.size(); ++i)
        keep(*outputs[i], Value(gradient));
    keep(*outputs.back(), std::move(gradient));
  }
  void keepGrads(std::vector<Value> &&gradients) {
    if (gradients.size() != outputs.size())
      throw std::runtime_error(std::to_string(gradients.size()) +
                               " gradients for " +
                               std::to_string(outputs.size()) + " inputs");
    for (size_t i = 0; i != outputs.size(); ++i)
      keep(*outputs[i], std::move(gradients[i]));
  }

  std::vector<Held<Value> *> found; ///< What the spans are of.
};

} // namespace ppcc::rt
