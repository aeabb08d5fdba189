// Links the list of a rank: checks its order and gives each value a cell.
//
// Algorithm: abstract execution. The linker runs the list with reader counts in
// the place of values. The list has no branches, so that the result is exact.
// It runs all iterations of a loop, but stores the rows of the loop once, or
// again where the set of restored actions changes between iterations. The
// microbatches of a value lie in a ring, a table indexed by the microbatch
// modulo a power of two. The ring doubles until no two of them collide.
// Invariant: the count of a value is the number of its reads to come; 0 means
// absent. A read of 0, a second insertion, or a count left at the end is an
// Error. Live values of a ring have different cells.
// Cost: O(actions) time; O(rows + values held at one time) memory, and a bit a
// forward.
//
// Example: stages 0 and 1 on one rank, 0F0 0F1 1F0 0F2 1F1 1F2. The output of
// stage 0 begins with a ring of 1. 0F0 takes cell 0. 0F1 collides with it, the
// ring grows to 2, and 0F1 takes cell 1. 1F0 frees cell 0, and 0F2 reuses it.
#pragma once

#include "ppcc/Runtime/Check.h"
#include "ppcc/Runtime/Wiring.h"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <vector>

namespace ppcc::rt {

/// The stages and microbatches of a rank for which its list has an action that
/// restores something (Kind::restores).
class Restored {
public:
  /// The rows must have been checked. O(rows), and nothing where no kind
  /// restores.
  Restored(const Program &program, uint32_t rank) {
    if (!std::ranges::any_of(program.kinds, &Kind::restores))
      return;
    RowReader rows(program.ranks[rank]);
    for (const Segment &segment : program.ranks[rank].segments)
      for (uint64_t i = 0; i != segment.rows; ++i)
        add(program, rows[segment.firstRow + i], segment);
    std::sort(single.begin(), single.end());
  }

  bool any() const { return !single.empty() || !repeated.empty(); }
  /// Whether what this action fills is restored. O(log(rows)), and O(rows in
  /// loops).
  bool has(const Row &row, uint8_t slots) const {
    if (std::binary_search(single.begin(), single.end(), keyOf(row, slots)))
      return true;
    return std::any_of(
        repeated.begin(), repeated.end(), [&](const Repeated &loop) {
          int64_t beyond = int64_t(row.microbatch) - loop.row.microbatch;
          return loop.row.pipe == row.pipe && loop.row.stage == row.stage &&
                 loop.slots == slots && beyond % loop.advance == 0 &&
                 beyond / loop.advance >= 0 &&
                 beyond / loop.advance < loop.count;
        });
  }

private:
  using Key = std::tuple<uint8_t, uint16_t, uint32_t, uint8_t>;
  struct Repeated {
    Row row;
    uint8_t slots;
    uint32_t count;
    int64_t advance; ///< Not 0.
  };

  static Key keyOf(const Row &row, uint8_t slots) {
    return {row.pipe, row.stage, row.microbatch, slots};
  }
  void add(const Program &program, const Row &row, const Segment &segment) {
    uint8_t slots = program.kinds[row.kind].restores;
    if (slots == 0 || row.microbatch == Row::noMicrobatch)
      return;
    if (segment.count == 1)
      single.push_back(keyOf(row, slots));
    else
      repeated.push_back({row, slots, segment.count, segment.advance});
  }

  std::vector<Key> single; ///< Sorted.
  std::vector<Repeated> repeated;
};

enum class Opcode : uint8_t {
  Receive,
  Send,
  Forward,
  Backward,
  BackwardInput,
  BackwardWeight,
  Declared,
  MoveOut, ///< What a declared action moves, to the rank of its role,
  MoveIn,  ///< and from there.
};

/// A row, ready to run.
struct Operation {
  uint32_t descriptor; ///< Index into Linked::wiring.
  uint32_t microbatch; ///< In the first iteration of its loop.
  uint32_t row;        ///< Its place in the rank's list: phase and site.
  uint16_t groupSize;  ///< How many begin here as one group; of the first.
  Opcode opcode;
  bool isRestored : 1; ///< As in ActionContext.
  bool isLastUse : 1;  ///< Nobody needs what its stage keeps any more.

  bool runsOnStage() const { return opcode > Opcode::Send; }
};
static_assert(sizeof(Operation) == 16);

/// What a rank did, and how much it held at one time.
struct Stats {
  uint64_t actions = 0; ///< Sends and receives included.
  uint64_t sends = 0, receives = 0;
  /// Forwards that had begun and whose backward (both parts) had not ended.
  uint32_t peakActivations = 0;
  /// Receives that were posted and not yet read.
  uint32_t peakReceives = 0;
};

/// The list of a rank, linked: nothing is received, made, read or sent twice,
/// before it is there, or never, and the values that are held at one time have
/// cells of their own. Loops stay loops.
struct Linked {
  /// Throws Error when the rows do not fit the program, whose head was checked.
  /// O(rows).
  Linked(const Program &program, uint32_t rank) : wiring(program, rank) {
    checkRows(program, rank, wiring);
  }
  /// Fills the rest. Throws Error when the rows cannot run in their order.
  /// O(actions) time; O(rows + values held at one time) memory, and a bit a
  /// forward.
  void link(const Program &program, uint32_t rank);

  Wiring wiring;
  std::vector<Operation> operations;
  std::vector<Segment> loops; ///< Over operations.
  std::vector<Ring> rings;    ///< Of roles.
  uint32_t numCells = 0;
  size_t maxEdges = 0; ///< That one action reads and makes values of.
  Stats counts;        ///< Of a run.
};

namespace detail {

class Linker {
public:
  Linker(const Program &program, uint32_t rank, Linked &linked)
      : program(program), rank(rank), list(program.ranks[rank]),
        restored(program, rank), wiring(linked.wiring),
        operations(linked.operations), loops(linked.loops),
        counts(linked.counts), liveReaders(wiring.numValues()),
        activations(program, rank, wiring) {
    for (const Segment &segment : list.segments)
      addSegment(segment);
    checkEnd();
    counts.peakActivations = activations.peak();
    assignCells(linked);
  }

private:
  void addSegment(const Segment &segment) {
    uint64_t first = operations.size();
    addRows(segment);
    uint32_t iterations = 0;
    microbatchOffset = 0;
    for (uint32_t iteration = 0; iteration != segment.count;
         ++iteration, ++iterations) {
      if (restored.any() && iteration != 0 && !restoresTheSame(first)) {
        loops.push_back({first, segment.rows, std::exchange(iterations, 0),
                         segment.advance});
        first = copyIteration(first);
      }
      for (uint64_t i = first; i != operations.size();
           i += operations[i].groupSize)
        walk({&operations[i], operations[i].groupSize});
      microbatchOffset += static_cast<uint32_t>(segment.advance);
    }
    loops.push_back({first, segment.rows, iterations, segment.advance});
  }

  void addRows(const Segment &segment) {
    RowReader rows(list);
    Operation *group = nullptr;
    operations.reserve(operations.size() + segment.rows);
    for (uint64_t i = segment.firstRow; i != segment.firstRow + segment.rows;
         ++i) {
      Row row = rows[i];
      const Kind &kind = program.kinds[row.kind];
      operations.push_back(
          {wiring.find(row), row.microbatch, static_cast<uint32_t>(i), 1,
           opcodeOf(kind, row), restored.has(row, kind.defines),
           // Without a backward nothing ends an activation.
           kind.kindClass == KindClass::Compute &&
               (!program.hasBackward || kind.defines & slot::WeightGrad)});
      if (!row.joined())
        group = &operations.back();
      else if (operations.back().opcode >= Opcode::MoveOut ||
               group->opcode >= Opcode::MoveOut)
        refuse(ofRow(rank, i), " moves something between ranks in a group");
      else if (++group->groupSize == 0)
        refuse(ofRow(rank, i), " joins too large a group");
    }
  }

  Opcode opcodeOf(const Kind &kind, const Row &row) const {
    switch (kind.kindClass) {
    case KindClass::Recv:
      return Opcode::Receive;
    case KindClass::Send:
      return Opcode::Send;
    case KindClass::Declared: {
      if (!kind.isMove())
        return Opcode::Declared;
      bool isNear = wiring.hosts(row.pipe, row.stage);
      return isNear == (kind.collective == Collective::To) ? Opcode::MoveOut
                                                           : Opcode::MoveIn;
    }
    case KindClass::Compute:
      break;
    }
    return kind.defines == slot::Output       ? Opcode::Forward
           : kind.defines == slot::InputGrad  ? Opcode::BackwardInput
           : kind.defines == slot::WeightGrad ? Opcode::BackwardWeight
                                              : Opcode::Backward;
  }

  // A loop is written apart where what is restored changes with its iterations.

  bool isRestored(const Operation &operation) const {
    Row row = rowOf(operation);
    return restored.has(row, program.kinds[row.kind].defines);
  }
  bool restoresTheSame(uint64_t first) const {
    return std::ranges::all_of(
        std::span(operations).subspan(first), [&](const Operation &operation) {
          return isRestored(operation) == operation.isRestored;
        });
  }
  uint64_t copyIteration(uint64_t first) {
    uint64_t end = operations.size();
    for (uint64_t i = first; i != end; ++i) {
      Operation copy = operations[i];
      copy.isRestored = isRestored(copy);
      copy.microbatch += microbatchOffset;
      operations.push_back(copy);
    }
    microbatchOffset = 0;
    return end;
  }

  // The order.

  /// Does with numbers what the engine does with values.
  void walk(std::span<const Operation> group) {
    for (const Operation &operation : group)
      if (operation.opcode == Opcode::Receive)
        receive(operation);
    for (const Operation &operation : group)
      if (operation.opcode > Opcode::Send)
        begin(operation);
    checkApart(group);
    for (const Operation &operation : group)
      if (operation.opcode > Opcode::Send)
        end(operation);
    for (const Operation &operation : group)
      if (operation.opcode == Opcode::Send)
        send(operation);
    counts.actions += group.size();
  }

  /// Parts of the work on one microbatch of a stage need each other.
  void checkApart(std::span<const Operation> group) const {
    auto isWork = [](const Operation &operation) {
      return operation.opcode > Opcode::Send &&
             operation.opcode < Opcode::Declared;
    };
    for (const Operation &operation : group)
      for (const Operation *other = group.data(); other != &operation; ++other)
        if (isWork(operation) && isWork(*other) &&
            operation.opcode != other->opcode &&
            operation.microbatch == other->microbatch &&
            wiring.descriptor(operation.descriptor).stage ==
                wiring.descriptor(other->descriptor).stage)
          fail(operation, "runs in a group with what it needs, or what needs "
                          "it");
  }

  void receive(const Operation &operation) {
    if (list.receiveBuffers != 0 && numReceives == list.receiveBuffers)
      fail(operation, "posts more receives than the ", list.receiveBuffers,
           " that the compiler counted");
    if (!insert(operation, wiring.descriptor(operation.descriptor).value, 1))
      fail(operation, "this message is received twice");
    ++counts.receives;
    counts.peakReceives = std::max(counts.peakReceives, ++numReceives);
  }

  void send(const Operation &operation) {
    uint32_t value = wiring.descriptor(operation.descriptor).value;
    if (!liveReaders[value].find(operation.microbatch + microbatchOffset))
      fail(operation, "the data of this send does not exist");
    read(value, operation);
    ++counts.sends;
  }

  void begin(const Operation &operation) {
    const ActionDescriptor &descriptor =
        wiring.descriptor(operation.descriptor);
    Row row = rowOf(operation);
    switch (operation.opcode) {
    case Opcode::Forward:
      attempt(operation,
              [&] { activations.beginForward(row, *descriptor.stage); });
      return require(operation, descriptor.stage->inputs, "the output");
    case Opcode::Backward:
    case Opcode::BackwardInput:
    case Opcode::BackwardWeight:
      attempt(operation, [&] {
        activations.beginBackward(row, *descriptor.kind, *descriptor.stage);
      });
      if (operation.opcode != Opcode::BackwardWeight)
        require(operation, descriptor.stage->outputGrads, "the gradient");
      return;
    default:
      return;
    }
  }

  void end(const Operation &operation) {
    const ActionDescriptor &descriptor =
        wiring.descriptor(operation.descriptor);
    const StageWiring &stage = *descriptor.stage;
    if (descriptor.kind->defines & slot::Output) {
      if (!stage.outputGrads.empty())
        insert(operation, stage.output,
               static_cast<uint32_t>(stage.outputGrads.size()));
      for (const EdgeEnd &edge : stage.inputs)
        read(edge.value, operation);
    }
    if (descriptor.kind->defines & slot::InputGrad) {
      for (const EdgeEnd &edge : stage.inputGrads)
        insert(operation, edge.value, 1);
      for (const EdgeEnd &edge : stage.outputGrads)
        read(edge.value, operation);
    }
    // Without a backward nothing ends an activation.
    if (descriptor.kind->defines & slot::WeightGrad)
      activations.end(operation.microbatch + microbatchOffset, stage);
  }

  void require(const Operation &operation, const std::vector<EdgeEnd> &edges,
               const char *what) {
    for (const EdgeEnd &edge : edges)
      if (!liveReaders[edge.value].find(operation.microbatch +
                                        microbatchOffset))
        fail(operation, "needs ", what, " of stage ", edge.stage,
             ", which is not there");
  }

  bool insert(const Operation &operation, uint32_t value, uint32_t readers) {
    bool isNew = false;
    attempt(operation, [&] {
      isNew = liveReaders[value].insert(operation.microbatch + microbatchOffset,
                                        readers);
    });
    return isNew;
  }
  void read(uint32_t value, const Operation &operation) {
    uint32_t *readers =
        liveReaders[value].find(operation.microbatch + microbatchOffset);
    if (--*readers == 0)
      numReceives -= wiring.isReceived(value);
  }

  void checkEnd() const {
    uint64_t left = 0;
    uint32_t some = 0;
    auto count = [&](uint32_t microbatch) {
      some = left++ == 0 ? microbatch : some;
    };
    for (const auto &value : liveReaders)
      value.forEach(count);
    if (program.hasBackward)
      activations.forEach(count);
    if (left != 0)
      throw Error(rank, "", "",
                  concat("the program has ended, but ", left,
                         " values have not been read, or have no backward; one "
                         "is of microbatch ",
                         some));
    try {
      activations.checkComplete();
    } catch (const std::exception &error) {
      throw Error(rank, "", "", error.what());
    }
  }

  /// Gives each value cells, and each role the rings of its values.
  void assignCells(Linked &linked) {
    std::vector<Ring> ringOf;
    for (const MicrobatchMap<uint32_t> &value : liveReaders) {
      ringOf.push_back(
          {linked.numCells, static_cast<uint32_t>(value.size() - 1)});
      linked.numCells += static_cast<uint32_t>(value.size());
    }
    std::vector<std::array<size_t, 3>> places;
    auto add = [&](const std::vector<EdgeEnd> &edges) {
      for (const EdgeEnd &edge : edges)
        linked.rings.push_back(ringOf[edge.value]);
    };
    for (ActionDescriptor &descriptor : linked.wiring.descriptors()) {
      const StageWiring &stage = *descriptor.stage;
      bool isForward = descriptor.kind->defines & slot::Output;
      bool isBackward = descriptor.kind->defines & slot::InputGrad;
      size_t reads = linked.rings.size(), outputs = reads;
      if (!descriptor.kind->runsOnStage()) {
        descriptor.ring = ringOf[descriptor.value];
      } else if (isForward) {
        add(stage.inputs);
        outputs = linked.rings.size();
        if (!stage.outputGrads.empty())
          linked.rings.push_back(ringOf[stage.output]);
        descriptor.readers = static_cast<uint32_t>(stage.outputGrads.size());
      } else if (isBackward) {
        add(stage.outputGrads);
        outputs = linked.rings.size();
        add(stage.inputGrads);
      }
      places.push_back({reads, outputs, linked.rings.size()});
      linked.maxEdges = std::max(linked.maxEdges, linked.rings.size() - reads);
    }
    for (size_t i = 0; i != places.size(); ++i) {
      ActionDescriptor &descriptor = linked.wiring.descriptors()[i];
      descriptor.reads = linked.rings.data() + places[i][0];
      descriptor.outputs = linked.rings.data() + places[i][1];
      descriptor.end = linked.rings.data() + places[i][2];
    }
  }

  Row rowOf(const Operation &operation) const {
    Row row = list.row(operation.row);
    row.microbatch = operation.microbatch + microbatchOffset;
    return row;
  }
  template <class... Parts>
  [[noreturn]] void fail(const Operation &operation,
                         const Parts &...parts) const {
    Row row = rowOf(operation);
    throw Error(rank, actionName(program, row), locationOf(program, row.site),
                concat(parts...));
  }
  template <class Function>
  void attempt(const Operation &operation, Function function) const {
    try {
      function();
    } catch (const std::exception &error) {
      fail(operation, error.what());
    }
  }

  const Program &program;
  uint32_t rank;
  const RankProgram &list;
  Restored restored;
  const Wiring &wiring;
  std::vector<Operation> &operations;
  std::vector<Segment> &loops;
  Stats &counts;
  /// By the number of a value: how many are still to read it.
  std::vector<MicrobatchMap<uint32_t>> liveReaders;
  ActivationTracker activations;
  uint32_t microbatchOffset =
      0; ///< What an iteration of a loop adds to microbatches.
  uint32_t numReceives = 0;
};

} // namespace detail

inline void Linked::link(const Program &program, uint32_t rank) {
  detail::Linker(program, rank, *this);
}
} // namespace ppcc::rt
