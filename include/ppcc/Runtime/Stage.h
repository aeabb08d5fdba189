// What the user brings: the computation of the stages, and what values are.
#pragma once

#include "ppcc/Runtime/Program.h"
#include "ppcc/Runtime/Values.h"

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace ppcc::rt {

/// The stages that a stage reads, or those that read it; ascending. O(gaps +
/// skip edges).
inline std::vector<uint16_t> neighbours(const Pipe &pipe, uint16_t stage,
                                        bool readers) {
  std::vector<uint16_t> all;
  if (readers && stage + 1u != pipe.numStages() && pipe.hasEdgeToNext(stage))
    all.push_back(stage + 1);
  for (SkipEdge edge : pipe.skipEdges) // In order, and longer than the others.
    if ((readers ? edge.from : edge.to) == stage)
      all.push_back(readers ? edge.to : edge.from);
  if (!readers && stage != 0 && pipe.hasEdgeToNext(stage - 1u))
    all.push_back(stage - 1);
  return all;
}

/// What is to be computed: a stage of a pipe for a microbatch.
struct ActionContext {
  const Program *program = nullptr;
  uint32_t rank = 0;
  uint8_t pipe = 0, kind = 0;
  uint16_t stage = 0;
  uint32_t microbatch = 0;
  uint32_t row = 0;  ///< Its place in the rank's list.
  uint16_t lane = 0; ///< Which member of its group it is; 0 when it has none.
  /// What it makes for the backward, a declared action makes again
  /// (`restores`): there is no need to keep it.
  bool isRestored = false;

  /// Index into Program::phases.
  uint16_t phase() const { return program->ranks[rank].row(row).phase(); }
  /// Index into Program::sites.
  uint32_t site() const { return program->ranks[rank].row(row).site; }
  /// The mnemonic of the action, such as `F` or `REDUCE_GRAD`.
  const char *mnemonic() const { return program->kinds[kind].mnemonic; }
  /// False of a declared action of a stage or a rank.
  bool hasMicrobatch() const { return microbatch != Row::noMicrobatch; }
  /// Whether the stage reads the model's input: it has no other source.
  bool isFirst() const { return !program->pipes[pipe].hasSources(stage); }
  /// Whether the loss follows the stage: no other reads its output. A pipe
  /// may have several.
  bool isLast() const { return !program->pipes[pipe].hasReaders(stage); }
};

/// The outputs that a forward reads, by stage: one, more after skip edges, or
/// none.
template <class Value> class Inputs {
public:
  Inputs(std::span<ValueCell<Value> *const> held) : held(held) {}

  size_t size() const { return held.size(); }
  bool empty() const { return held.empty(); }
  const Value &operator[](size_t i) const { return held[i]->value; }
  /// The value itself when nobody else is to read it, else a copy.
  Value take(size_t i) const { return held[i]->take(); }

private:
  std::span<ValueCell<Value> *const> held;
};

/// The hooks of a stage, which do nothing; a stage that derives from it
/// overrides what it needs by a function of the same name.
struct StageHooks {
  /// The size of the value of a message, which the receiver checks; 0 when it
  /// takes what comes. MPI asks for it.
  size_t messageBytes(const Label &) { return 0; }
  /// That of what an action moves between ranks; NCCL asks for it.
  size_t moveBytes(const Label &) { return 0; }
  /// The backward of the work has ended, both parts of it: what the forward
  /// kept can go.
  void release(const ActionContext &) {}
  /// The run of this rank ends early, for this reason. What other ranks wait
  /// for in the stage has to end, too.
  void fail(const std::string &) {}
};

/// The computation of the stages of one rank. `Value` is what goes from stage
/// to stage: movable, default-constructible; copyable where a value has several
/// readers.
///
///     struct MyStage : StageHooks {
///       using Value = ...;
///       Value forward(const ActionContext &, const Inputs<Value> &inputs);
///       Value backward(const ActionContext &, Value *outputGrad);
///       Value backward_input(const ActionContext &, Value *outputGrad);
///       void backward_weight(const ActionContext &);
///       void perform(const ActionContext &);
///       Value moveOut(const ActionContext &);
///       void moveIn(const ActionContext &, Value &&);
///       void add(Value &sum, const Value &gradient);
///       bool overlap(const ActionContext &forward, const ActionContext
///       &backward,
///                    const Half &runForward, const Half &runBackward);
///     };
///
/// `outputGrad` is null at a last stage, else the stage's own to change. A
/// backward returns the gradient of its input, which every stage that it read
/// gets; where those differ it returns a std::vector<Value>, one for each, in
/// the order of `inputs`. `perform` does what the program declares; the
/// mnemonic of the work says what. What an action moves to another rank, one of
/// them gives, and the other takes before it does more of that work;
/// `work.rank` tells which of them hosts the stage. `add` sums the gradients
/// from several readers (otherwise `sum += gradient`). `overlap` runs both
/// halves of an overlap group of a forward and a backward, in what turns it
/// likes (Interleave.h), or gives false and leaves them to the engine.
/// Functions that a program does not call can be left out.
template <class T>
concept Stage = std::is_default_constructible_v<typename T::Value> &&
                std::is_move_assignable_v<typename T::Value> &&
                requires(T stage, const ActionContext &work, const Label &label,
                         const Inputs<typename T::Value> &inputs) {
                  {
                    stage.forward(work, inputs)
                  } -> std::convertible_to<typename T::Value>;
                  stage.messageBytes(label);
                  stage.release(work);
                };

/// How the bytes of a value are reached: of contiguous ranges of plain numbers
/// (std::vector<double>) by this, of others by a specialisation with the same
/// two functions. MPI needs it; on other transports it only checks sizes.
template <class Value> struct Bytes;

template <class Value>
  requires requires(Value value, size_t size) {
    value.data();
    value.size();
    value.resize(size);
    requires std::is_trivially_copyable_v<typename Value::value_type>;
  }
struct Bytes<Value> {
  static std::span<std::byte> of(Value &value) {
    return std::as_writable_bytes(std::span(value.data(), value.size()));
  }
  /// Makes room for `bytes`; false when they are no whole number of elements.
  static bool resize(Value &value, size_t bytes) {
    value.resize(bytes / sizeof(typename Value::value_type));
    return bytes % sizeof(typename Value::value_type) == 0;
  }
};

template <class Value>
concept HasBytes = requires(Value &value) { Bytes<Value>::of(value); };

} // namespace ppcc::rt
