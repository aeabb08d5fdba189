// A program as data: what `ppcc --emit=cpp` writes and the engine executes.
//
// Nothing here allocates or runs when a program starts; the header includes
// only what the language itself needs, so that generated files compile quickly.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ppcc::rt {

/// The layout of the types below. It grows with every change to them; the
/// engine refuses programs with another number.
inline constexpr uint32_t abiVersion = 7;

/// A read-only array that somebody else owns.
template <class T> struct ArrayView {
  const T *data = nullptr;
  uint64_t size = 0;

  constexpr ArrayView() = default;
  constexpr ArrayView(const T *data, uint64_t size) : data(data), size(size) {}
  template <uint64_t N>
  constexpr ArrayView(const T (&array)[N]) : data(array), size(N) {}

  constexpr const T &operator[](uint64_t i) const { return data[i]; }
  constexpr const T *begin() const { return data; }
  constexpr const T *end() const { return data + size; }
  constexpr bool empty() const { return size == 0; }
};

/// The results of a stage for a microbatch, as bits.
namespace slot {
enum : uint8_t {
  Output = 1,     ///< What the next stages read.
  InputGrad = 2,  ///< The gradient of the input: what the previous ones read.
  WeightGrad = 4, ///< The gradients of the weights; they stay on the rank.
};
} // namespace slot

/// Where a kind of action runs and what it moves. A declared kind is work whose
/// rules the program brings with it; what it does, the user's stage knows.
enum class KindClass : uint8_t { Compute, Send, Recv, Declared };

/// The ranks that do a declared action together.
enum class Collective : uint8_t {
  None,
  All,      ///< All ranks of the program.
  Replicas, ///< Those that host the stage of this number in any pipe.
  Stages,   ///< Those that host some stages of the pipe.
  Outside,  ///< The rank, and ranks of other programs.
  To,       ///< The rank, and one to which it moves something.
  From,     ///< The same the other way.
};

/// The words for both in files; Collective::None has none.
inline constexpr const char *kindClassNames[] = {"compute", "send", "recv",
                                                 "declared"},
                            *collectiveNames[] = {
                                "",        "all", "replicas", "stages",
                                "outside", "to",  "from"};

/// Whether a stage of a pipe is one of `stages`; those below 0 count from the
/// end.
template <class Stages>
constexpr bool namesStage(const Stages &stages, int64_t numStages,
                          int64_t stage) {
  for (int64_t named : stages)
    if ((named < 0 ? named + numStages : named) == stage)
      return true;
  return false;
}

/// A kind of action.
struct Kind {
  const char *mnemonic; ///< As in `0F3`.
  KindClass kindClass;
  uint8_t defines; ///< The slots that it fills or carries.
  uint8_t needs;   ///< The slots of its own stage and microbatch it reads.

  // Of a declared kind.
  uint8_t restores = 0; ///< What fills these slots keeps nothing: this does.
  Collective collective = Collective::None;
  ArrayView<int32_t> stages = {}; ///< Of Collective::Stages; those below 0
                                  ///< count from the last.

  /// Whether another rank has the other end of it, in a row of its own. Both
  /// name the stage of the first, and as peer one of the other.
  constexpr bool isMove() const {
    return collective == Collective::To || collective == Collective::From;
  }
  /// Whether the stage does it, not the transport.
  constexpr bool runsOnStage() const {
    return kindClass == KindClass::Compute || kindClass == KindClass::Declared;
  }
};

/// One action, in 16 bytes.
struct Row {
  uint8_t kind;        ///< Index into Program::kinds.
  uint8_t pipe;        ///< Index into Program::pipes.
  uint16_t stage;      ///< The stage that executes it, of its pipe.
  uint32_t microbatch; ///< Of the pipe's range; noMicrobatch of a declared
                       ///< action that is not of one.
  uint16_t peer;       ///< Of a message, or an action between ranks: the stage
                       ///< at the other end, else none.
  uint16_t phaseAndJoined; ///< Index into Program::phases; the highest bit says
                           ///< that it runs in one group with the row before.
  uint32_t site;           ///< Index into Program::sites.

  static constexpr uint16_t noPeer = 0xFFFF, joinedBit = 0x8000;
  static constexpr uint32_t noMicrobatch = 0xFFFFFFFF;

  constexpr bool hasPeer() const { return peer != noPeer; }
  constexpr bool joined() const { return phaseAndJoined & joinedBit; }
  constexpr uint16_t phase() const {
    return static_cast<uint16_t>(phaseAndJoined & ~joinedBit);
  }
};
static_assert(sizeof(Row) == 16);

/// Rows that run several times in succession. Loops do not nest.
struct Segment {
  uint64_t firstRow;
  uint32_t rows;
  uint32_t count;  ///< How often they run.
  int32_t advance; ///< What each time adds to the microbatches of the rows.
};

/// What one rank does, in order, and what the compiler knows of it.
struct RankProgram {
  ArrayView<Row> rows;
  /// The same rows as bytes, when `rows` is empty: 16 a row, in the order of
  /// the fields of Row, each number with its lowest byte first.
  ArrayView<char> packedRows;
  ArrayView<Segment> segments;
  /// Receives that are posted and not yet read, at most; 0 when unknown.
  uint32_t receiveBuffers = 0;
  /// Forwards whose backward has not ended, at most; 0 when unknown.
  uint32_t peakActivations = 0;

  constexpr uint64_t numRows() const {
    return rows.empty() ? packedRows.size / sizeof(Row) : rows.size;
  }
  constexpr Row row(uint64_t i) const {
    return rows.empty() ? unpack(packedRows.data + i * sizeof(Row)) : rows[i];
  }

private:
  static constexpr uint32_t number(const char *bytes, unsigned count) {
    uint32_t value = 0;
    for (unsigned i = 0; i != count; ++i)
      value |= uint32_t(static_cast<unsigned char>(bytes[i])) << (8 * i);
    return value;
  }
  static constexpr Row unpack(const char *at) {
    return {static_cast<uint8_t>(number(at, 1)),
            static_cast<uint8_t>(number(at + 1, 1)),
            static_cast<uint16_t>(number(at + 2, 2)),
            number(at + 4, 4),
            static_cast<uint16_t>(number(at + 8, 2)),
            static_cast<uint16_t>(number(at + 10, 2)),
            number(at + 12, 4)};
  }
};

/// An edge beside those between neighbouring stages, to a later stage.
struct SkipEdge {
  uint16_t from, to;
};

/// A tensor as a stage gives it to another.
struct Tensor {
  const char *name;
  const char *type;        ///< Of its elements: `f32`, `bf16`, `i64`, ...
  ArrayView<int64_t> dims; ///< -1 for a size that differs between microbatches.
};

/// What an edge carries, in this order.
struct EdgeTensors {
  uint16_t from, to;
  bool shapesVary; ///< Its receiver learns them with each message only.
  ArrayView<Tensor> tensors;
};

/// Stages that some of the microbatches pass through. Each has an edge to the
/// next, as far as `gaps` does not take it away; all edges lead up.
struct Pipe {
  const char *name;
  uint32_t firstMicrobatch, numMicrobatches;
  ArrayView<uint32_t> rankOfStage; ///< One entry a stage.
  ArrayView<SkipEdge> skipEdges;   ///< Sorted, no duplicates.
  ArrayView<uint16_t> gaps = {};   ///< Stages without an edge to the next;
                                   ///< sorted, no duplicates.
  uint32_t slices = 1; ///< So many microbatches in a row are one sequence.
  ArrayView<EdgeTensors> tensors = {}; ///< By edge, as far as they are known.

  constexpr uint32_t numStages() const {
    return static_cast<uint32_t>(rankOfStage.size);
  }
  constexpr bool hasMicrobatch(int64_t microbatch) const {
    return microbatch >= firstMicrobatch &&
           microbatch - firstMicrobatch < numMicrobatches;
  }
  /// Whether a stage that is not the last has an edge to the next.
  constexpr bool hasEdgeToNext(uint32_t stage) const {
    for (uint16_t gap : gaps)
      if (gap >= stage)
        return gap != stage;
    return true;
  }
  /// Whether the stage reads the output of another. O(gaps + skip edges).
  constexpr bool hasSources(uint32_t stage) const {
    if (stage == 0 || hasEdgeToNext(stage - 1))
      return stage != 0;
    for (SkipEdge edge : skipEdges)
      if (edge.to == stage)
        return true;
    return false;
  }
  /// Whether another stage reads its output. O(gaps + skip edges).
  constexpr bool hasReaders(uint32_t stage) const {
    if (stage + 1 == numStages() || hasEdgeToNext(stage))
      return stage + 1 != numStages();
    for (SkipEdge edge : skipEdges)
      if (edge.from == stage)
        return true;
    return false;
  }
};

/// The place in a source file that an action comes from.
struct Site {
  int32_t file;          ///< Index into Program::files; -1 when unknown.
  uint32_t line, column; ///< From 1; columns in bytes.
  uint32_t caller;       ///< The call of the block around it, or 0.
};

/// Two ranks that exchange messages.
struct RankPair {
  uint32_t first, second;
};

class LoadedProgram;

/// A schedule with values for its parameters: what each rank does, in order.
struct Program {
  uint32_t abi; ///< abiVersion of the header that it was made for.
  uint32_t numRanks;
  const char *name;
  bool hasBackward; ///< False for a forward-only program.
  ArrayView<Kind> kinds;
  ArrayView<Pipe> pipes;
  ArrayView<const char *> phases; ///< The first is empty: "in no phase".
  ArrayView<const char *> files;
  ArrayView<Site> sites; ///< The first is "unknown".
  ArrayView<RankProgram> ranks;
  /// In this order connections are opened, before the first action; empty when
  /// nobody asked for an order.
  ArrayView<RankPair> preconnect;
  /// What the compiler found for digestOf() (Digest.h); null when unknown. The
  /// engine takes the digest of the rows that it has.
  const char *digest = nullptr;
  /// Under which it was proven that no rank waits for ever; empty: none.
  ArrayView<const char *> transports = {};
  /// Not null in what stands for a program of each number of microbatches, of
  /// which there is nothing else but the name: gives one of them, of
  /// `families`.
  using Instance = LoadedProgram (*)(const void *families,
                                     int64_t microbatches);
  Instance instance = nullptr;
  const void *families = nullptr;

  static constexpr Program parametric(const char *name, Instance instance,
                                      const void *families = nullptr) {
    Program program{};
    program.abi = abiVersion;
    program.name = name;
    program.instance = instance;
    program.families = families;
    return program;
  }
  /// The program of so many microbatches, from one for all (Json.h). What
  /// repeats itself stays a loop, so it is as large for all. Throws Error where
  /// there is none, with the reason.
  LoadedProgram at(int64_t microbatches) const;

  /// Whether some message has a tensor whose shape its receiver learns with it
  /// only.
  constexpr bool shapesVary() const {
    for (const Pipe &pipe : pipes)
      for (const EdgeTensors &edge : pipe.tensors)
        if (edge.shapesVary)
          return true;
    return false;
  }
};

} // namespace ppcc::rt
