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
  void link(const Linked &linked) { found.resize(linked.mostEdges); }
  [[gnu::always_inline]] inline void begin(const Operation &action,
                                           const Role &doing,
                                           uint32_t microbatch, uint16_t lane) {
    operation = &action;
    role = &doing;
    work.pipe = role->label.pipe;
    work.kind = role->number;
    work.stage = role->label.from;
    work.microbatch = microbatch;
    work.row = action.row;
    work.lane = lane;
    work.isRestored = action.isRestored;
  }
  /// Finds in `cells` what it reads, for each of which it calls `await`, until
  /// that gives false, and what it makes.
  template <class Await>
  [[gnu::always_inline]] inline bool find(Held<Value> *cells, Await await) {
    Held<Value> **into = found.data();
    const Ring *ring = role->reads;
    for (; ring != role->makes; ++ring) {
      *into = cells + ring->at(work.microbatch);
      if (!await(**into++))
        return false;
    }
    makes = into;
    if (ring != role->end)
      *into++ = cells + ring++->at(work.microbatch);
    end = ring == role->end ? into : findMore(ring, cells, into);
    return true;
  }
  Held<Value> **reads() { return found.data(); }

  Work work;
  const Operation *operation = nullptr;
  const Role *role = nullptr;
  /// Behind the cells of what it reads: that of the output, or of the gradient
  /// for each input; and behind these.
  Held<Value> **makes = nullptr, **end = nullptr;
  Value unread{}; ///< What it made for nobody, or moves between ranks.
  std::exception_ptr failure;     ///< Of a call in another thread.
  int64_t started = 0, ended = 0; ///< For the trace.

  bool isDeclared() const { return operation->opcode >= Opcode::Declared; }

  /// Calls the function of the stage. Throws what that throws, and
  /// std::runtime_error when the stage has none.
  [[gnu::always_inline]] inline void run(S &stage) {
    switch (operation->opcode) {
    case Opcode::Forward:
      return keepOutput(
          stage.forward(work, Inputs<Value>({found.data(), makes})));
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
  [[gnu::noinline]] Held<Value> **findMore(const Ring *ring, Held<Value> *cells,
                                           Held<Value> **into) const {
    for (; ring != role->end; ++ring)
      *into++ = cells + ring->at(work.microbatch);
    return into;
  }

  /// The gradient of the output of the stage, summed over its readers.
  Value *gradient(S &stage) {
    Held<Value> **held = reads();
    if (held == makes)
      return nullptr;
    Value &sum = (*held)->value;
    while (++held != makes)
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

  [[gnu::always_inline]] inline void keep(Held<Value> &held, Value &&value) {
    held.readers = role->readers;
    replace(held.value, std::move(value));
  }
  [[gnu::always_inline]] inline void keepOutput(Value &&output) {
    if (makes == end)
      unread = std::move(output);
    else
      keep(**makes, std::move(output));
  }
  /// One for all sources of the stage: each gets a copy, the last the value.
  [[gnu::always_inline]] inline void keepGrads(Value &&gradient) {
    if (makes == end)
      return void(unread = std::move(gradient));
    Held<Value> **held = makes;
    if constexpr (std::is_copy_constructible_v<Value>)
      for (; held + 1 != end; ++held)
        keep(**held, Value(gradient));
    keep(**held, std::move(gradient));
  }
  void keepGrads(std::vector<Value> &&gradients) {
    size_t inputs = static_cast<size_t>(end - makes);
    if (gradients.size() != inputs)
      throw std::runtime_error(
          concat(gradients.size(), " gradients for ", inputs, " inputs"));
    for (size_t i = 0; i != inputs; ++i)
      keep(*makes[i], std::move(gradients[i]));
  }

  std::vector<Held<Value> *> found; ///< What it reads, then makes.
};

} // namespace ppcc::rt
