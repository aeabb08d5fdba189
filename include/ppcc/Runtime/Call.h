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

  Call(const Program &program, uint32_t rank) {
    work.program = &program;
    work.rank = rank;
  }
  void link(const Linked &linked) { found.resize(linked.maxEdges); }
  void begin(const Operation &action, const ActionDescriptor &doing,
             uint32_t microbatch, uint16_t lane) {
    operation = &action;
    descriptor = &doing;
    work.pipe = descriptor->label.pipe;
    work.kind = descriptor->number;
    work.stage = descriptor->label.from;
    work.microbatch = microbatch;
    work.row = action.row;
    work.lane = lane;
    work.isRestored = action.isRestored;
  }
  /// Finds in `cells` what it reads, for each of which it calls `await`, until
  /// that gives false, and what it makes.
  template <class WaitFor> bool find(ValueCell<Value> *cells, WaitFor await) {
    ValueCell<Value> **into = found.data();
    const Ring *ring = descriptor->reads;
    for (; ring != descriptor->outputs; ++ring) {
      *into = cells + ring->at(work.microbatch);
      if (!await(**into++))
        return false;
    }
    outputs = into;
    for (; ring != descriptor->end; ++ring)
      *into++ = cells + ring->at(work.microbatch);
    end = into;
    return true;
  }
  ValueCell<Value> **reads() { return found.data(); }

  ActionContext work;
  const Operation *operation = nullptr;
  const ActionDescriptor *descriptor = nullptr;
  /// Behind the cells of what it reads: that of the output, or of the gradient
  /// for each input; and after these.
  ValueCell<Value> **outputs = nullptr, **end = nullptr;
  Value unroutedValue{}; ///< What it made for nobody, or moves between ranks.
  std::exception_ptr failure;     ///< Of a call in another thread.
  int64_t started = 0, ended = 0; ///< For the trace.

  bool isDeclared() const { return operation->opcode >= Opcode::Declared; }

  /// Calls the function of the stage. Throws what that throws, and
  /// std::runtime_error when the stage has none.
  void run(S &stage) {
    switch (operation->opcode) {
    case Opcode::Forward:
      return keepOutput(
          stage.forward(work, Inputs<Value>({found.data(), outputs})));
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
    case Opcode::MoveOut:
      if constexpr (requires { unroutedValue = stage.moveOut(work); })
        return void(unroutedValue = stage.moveOut(work));
      throw std::runtime_error("it has no function `moveOut`");
    case Opcode::MoveIn:
      if constexpr (requires { stage.moveIn(work, std::move(unroutedValue)); })
        return stage.moveIn(work, std::move(unroutedValue));
      throw std::runtime_error("it has no function `moveIn`");
    default:
      if constexpr (requires { stage.perform(work); })
        return stage.perform(work);
      throw std::runtime_error("it has no function `perform`");
    }
  }

private:
  /// The gradient of the output of the stage, summed over its readers.
  Value *gradient(S &stage) {
    ValueCell<Value> **held = reads();
    if (held == outputs)
      return nullptr;
    Value &sum = (*held)->value;
    while (++held != outputs)
      add(stage, sum, (*held)->value);
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

  void keep(ValueCell<Value> &held, Value &&value) {
    held.readers = descriptor->readers;
    held.value = std::move(value);
  }
  void keepOutput(Value &&output) {
    if (outputs == end)
      unroutedValue = std::move(output);
    else
      keep(**outputs, std::move(output));
  }
  /// One for all sources of the stage: each gets a copy, the last the value.
  void keepGrads(Value &&gradient) {
    if (outputs == end)
      return void(unroutedValue = std::move(gradient));
    ValueCell<Value> **held = outputs;
    if constexpr (std::is_copy_constructible_v<Value>)
      for (; held + 1 != end; ++held)
        keep(**held, Value(gradient));
    keep(**held, std::move(gradient));
  }
  void keepGrads(std::vector<Value> &&gradients) {
    size_t inputs = static_cast<size_t>(end - outputs);
    if (gradients.size() != inputs)
      throw std::runtime_error(
          concat(gradients.size(), " gradients for ", inputs, " inputs"));
    for (size_t i = 0; i != inputs; ++i)
      keep(*outputs[i], std::move(gradients[i]));
  }

  std::vector<ValueCell<Value> *> found; ///< What it reads, then makes.
};

} // namespace ppcc::rt
