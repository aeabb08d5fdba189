// Orders of the actions of a workload, and how long they take.
#pragma once

#include "ppcc/Analysis/ResourceBound.h"

namespace ppcc::synthesis {

/// A part of a stage's work: what one letter of a rank's word stands for. The
/// microbatches of a letter follow by counting.
using Op = uint32_t;
inline Op opOf(uint32_t stage, unsigned part) {
  return stage * Workload::numParts + part;
}
inline uint32_t stageOf(Op op) { return op / Workload::numParts; }
inline unsigned partOf(Op op) { return op % Workload::numParts; }

using Word = std::vector<Op>;
/// What each rank does.
using Order = std::vector<Word>;

/// How a stage saves what its gradients need: of each 8 microbatches n, spread,
/// in another way than by keeping it.
struct StageSaving {
  static constexpr uint32_t of = 8;
  Workload::Saving how = Workload::Saving::Keep;
  uint32_t n = 0;

  bool has(uint32_t microbatch) const {
    return uint64_t(microbatch) * n % of < n;
  }
  bool is(Workload::Saving way) const { return n != 0 && how == way; }
  bool operator==(const StageSaving &) const = default;
};

/// How copies to the host and back go on beside the work of a rank.
struct Copies {
  uint32_t inFlight = 2; ///< To the host, at most.
  uint32_t margin = 1;   ///< So many actions ahead of its use one comes back.
  uint32_t staged = 3;   ///< Microbatches for which there is room meanwhile.
  bool operator==(const Copies &) const = default;
};

/// A choice for each stage, and what the stages take in each way.
struct Savings {
  std::array<std::optional<Workload>, 3> loads; ///< By way, if it is a choice.
  std::vector<StageSaving> ofStage;
  Copies copies;

  /// The ways beside keeping that may be chosen.
  SmallVector<Workload::Saving, 2> ways() const;
  const Workload &load(Workload::Saving how) const {
    return *loads[static_cast<size_t>(how)];
  }
  const Workload &kept() const { return load(Workload::Saving::Keep); }
  bool isSome() const {
    return llvm::any_of(ofStage, [](StageSaving one) { return one.n != 0; });
  }
  bool uses(Workload::Saving how) const {
    return llvm::any_of(ofStage, [&](StageSaving one) { return one.is(how); });
  }
  /// What the copies of a stage take.
  Amount staged(uint32_t stage) const {
    return ofStage[stage].is(Workload::Saving::Offload)
               ? kept().stages[stage].heldBehindF() * Amount(copies.staged)
               : 0;
  }
};

/// What no order with this choice is better than; with `isFree`, with any.
ResourceBound boundOf(const Savings &savings, Objective objective,
                      bool isFree = false);

/// A workload laid out for the search: columns by Op.
struct Problem {
  static constexpr Amount unlimited = std::numeric_limits<Amount>::max() / 4;
  struct Edge {
    Op op;
    Time latency;
  };

  /// That of `savings`, if there are some; `load` has what is kept.
  Problem(const Workload &load, Objective objective,
          const Savings *savings = nullptr);

  uint32_t numOps() const { return static_cast<uint32_t>(count.size()); }
  uint32_t numRanks() const { return static_cast<uint32_t>(room.size()); }
  ArrayRef<Edge> sources(Op op) const { return slice(sourceEdges, op); }
  ArrayRef<Edge> readers(Op op) const { return slice(readerEdges, op); }
  /// The least room in which a rank can work: one microbatch.
  Amount leastRoom(uint32_t rank) const { return whole[rank] + slack[rank]; }
  /// Whether the rank, or each rank, has it.
  bool hasRoom(uint32_t rank) const {
    return load.ofRank[rank].empty() || leastRoom(rank) <= room[rank];
  }
  bool hasRoom() const;

  /// What an action of a microbatch takes.
  Time timeOf(Op op, uint32_t m) const {
    return isSaved(op, m) ? saved[op].time : time[op];
  }
  Amount takenBy(Op op, uint32_t m) const {
    return isSaved(op, m) ? saved[op].takes : takes[op];
  }
  Amount givenBy(Op op, uint32_t m) const {
    return isSaved(op, m) ? saved[op].gives : gives[op];
  }
  /// What is held between F and I.
  Amount heldBy(uint32_t stage, uint32_t m) const {
    Op op = opOf(stage, Workload::F);
    return takenBy(op, m) - givenBy(op, m);
  }

  const Workload &load;
  Objective objective;
  const Savings *savings;
  ResourceBound bound;
  std::vector<uint32_t> count; ///< Of microbatches; 0 where there is no part.
  std::vector<Time> time;
  std::vector<Amount> takes, gives;
  std::vector<uint32_t> rank;
  std::vector<uint32_t> first; ///< Of the op's slots, one a microbatch.
  std::vector<Amount> room;    ///< By rank;
  std::vector<Amount> whole;   ///< what a microbatch needs between F and I,
  std::vector<Amount> slack;   ///< and what actions take for a moment.
  uint32_t numActions = 0;     ///< And slots.
  uint32_t mostChunks = 0;     ///< On a rank.
  Time period = 0;             ///< The work of a microbatch on a rank.
  std::vector<Time> away;      ///< By stage, as in AloneTimes.

private:
  bool isSaved(Op op, uint32_t m) const {
    return !saved.empty() && savings->ofStage[stageOf(op)].has(m);
  }
  struct Saved {
    Time time;
    Amount takes, gives;
  };
  std::vector<Saved> saved; ///< Of the microbatches that are; by Op.

  struct Edges {
    std::vector<uint32_t> starts{0};
    std::vector<Edge> edges;
  };
  static ArrayRef<Edge> slice(const Edges &edges, Op op) {
    return ArrayRef(edges.edges)
        .slice(edges.starts[op], edges.starts[op + 1] - edges.starts[op]);
  }

  Edges sourceEdges, readerEdges;
};

/// Runs orders by data alone. What it allocates, it keeps.
class Runner {
public:
  explicit Runner(const Problem &problem);

  /// What the objective is about; nothing when ranks wait for each other.
  /// O(actions).
  std::optional<Time> run(const Order &order);

  /// Of the last run that ended.
  Time endOf(Op op, uint32_t microbatch) const {
    return ends[problem.first[op] + microbatch];
  }
  Time startOf(Op op, uint32_t microbatch) const {
    return endOf(op, microbatch) - problem.timeOf(op, microbatch);
  }
  /// By rank and place in its word.
  ArrayRef<uint32_t> microbatches(uint32_t rank) const { return mbs[rank]; }
  /// The place of an action in the word of its rank.
  uint32_t placeOf(Op op, uint32_t microbatch) const {
    return places[problem.first[op] + microbatch];
  }
  /// The rank that ends last, or takes longest.
  uint32_t lastRank() const { return last; }
  /// By how much the spans of ranks are above the bound, all together.
  Time excess() const { return above; }

private:
  const Problem &problem;
  std::vector<Time> ends, free;
  std::vector<uint32_t> places, next, at, work;
  std::vector<uint64_t> waitsFor; ///< The slot that a rank is blocked on.
  std::vector<std::vector<uint32_t>> mbs;
  uint32_t last = 0;
  Time above = 0;
};

/// Whether each part follows the one that it needs, by counting, and the rank
/// keeps to its room. O(actions of the rank).
bool isValid(const Problem &problem, uint32_t rank, const Word &word);

} // namespace ppcc::synthesis
