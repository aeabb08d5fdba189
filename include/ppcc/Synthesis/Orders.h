// Orders of the actions of a workload, and how long they take.
#pragma once

#include "ppcc/Analysis/Cost/ResourceBound.h"

namespace ppcc::synthesis {

/// A part of a stage's work: what one letter of a rank's word stands for. The
/// microbatches of a letter follow by counting.
using Op = uint32_t;
inline Op opOf(uint32_t stage, unsigned part) {
  return stage * Workload::numParts + part;
}
inline uint32_t stageOf(Op op) { return op / Workload::numParts; }
inline unsigned partOf(Op op) { return op % Workload::numParts; }

using OpSequence = std::vector<Op>;
/// What each rank does.
using Order = std::vector<OpSequence>;

/// How a stage saves what its gradients need: of each 8 microbatches n, spread,
/// in another way than by keeping it.
struct StageActivationPolicy {
  static constexpr uint32_t of = 8;
  Workload::ActivationPolicy policy = Workload::ActivationPolicy::Keep;
  uint32_t n = 0;

  bool has(uint32_t microbatch) const {
    return uint64_t(microbatch) * n % of < n;
  }
  bool is(Workload::ActivationPolicy way) const {
    return n != 0 && policy == way;
  }
  bool operator==(const StageActivationPolicy &) const = default;
};

/// How copies to the host and back go on beside the work of a rank.
struct OffloadConfig {
  uint32_t inFlight = 2; ///< To the host, at most.
  uint32_t prefetchDistance =
      1; ///< So many actions ahead of its use one comes back.
  uint32_t stagingSlots =
      3; ///< Microbatches for which there is room meanwhile.
  bool operator==(const OffloadConfig &) const = default;
};

/// A choice for each stage, and what the stages take in each way.
struct ActivationPlan {
  std::array<std::optional<Workload>, 3> loads; ///< By way, if it is a choice.
  std::vector<StageActivationPolicy> ofStage;
  OffloadConfig copies;

  /// The ways beside keeping that may be chosen.
  SmallVector<Workload::ActivationPolicy, 2> policies() const;
  const Workload &load(Workload::ActivationPolicy policy) const {
    return *loads[static_cast<size_t>(policy)];
  }
  const Workload &kept() const {
    return load(Workload::ActivationPolicy::Keep);
  }
  bool hasAny() const {
    return llvm::any_of(ofStage,
                        [](StageActivationPolicy one) { return one.n != 0; });
  }
  bool uses(Workload::ActivationPolicy policy) const {
    return llvm::any_of(
        ofStage, [&](StageActivationPolicy one) { return one.is(policy); });
  }
  /// What the copies of a stage take.
  Amount staged(uint32_t stage) const {
    return ofStage[stage].is(Workload::ActivationPolicy::Offload)
               ? kept().stages[stage].heldAfterF() * Amount(copies.stagingSlots)
               : 0;
  }
};

/// What no order with this choice is better than; with `overAllPlans`, with
/// any.
ResourceBound boundOf(const ActivationPlan &plan, Objective objective,
                      bool overAllPlans = false);

/// A workload laid out for the search: columns by Op.
struct Problem {
  static constexpr Amount unlimited = std::numeric_limits<Amount>::max() / 4;
  struct Edge {
    Op op;
    Time latency;
  };

  /// That of `savings`, if there are some; `load` has what is kept.
  Problem(const Workload &load, Objective objective,
          const ActivationPlan *plan = nullptr);

  uint32_t numOps() const { return static_cast<uint32_t>(count.size()); }
  uint32_t numRanks() const {
    return static_cast<uint32_t>(memoryBudget.size());
  }
  ArrayRef<Edge> sources(Op op) const { return slice(sourceEdges, op); }
  ArrayRef<Edge> readers(Op op) const { return slice(readerEdges, op); }
  /// The least room in which a rank can work: one microbatch.
  Amount minMemory(uint32_t rank) const {
    return claim[rank] + transient[rank];
  }
  /// Whether the rank, or each rank, has it.
  bool fitsMemory(uint32_t rank) const {
    return load.ofRank[rank].empty() || minMemory(rank) <= memoryBudget[rank];
  }
  bool fitsMemory() const;

  /// What an action of a microbatch takes.
  Time timeOf(Op op, uint32_t m) const {
    return hasPolicy(op, m) ? saved[op].time : time[op];
  }
  Amount allocatedBy(Op op, uint32_t m) const {
    return hasPolicy(op, m) ? saved[op].allocates : allocates[op];
  }
  Amount freedBy(Op op, uint32_t m) const {
    return hasPolicy(op, m) ? saved[op].frees : frees[op];
  }
  /// What is held between F and I.
  Amount stashedBy(uint32_t stage, uint32_t m) const {
    Op op = opOf(stage, Workload::F);
    return allocatedBy(op, m) - freedBy(op, m);
  }

  const Workload &load;
  Objective objective;
  const ActivationPlan *plan;
  ResourceBound bound;
  std::vector<uint32_t> count; ///< Of microbatches; 0 where there is no part.
  std::vector<Time> time;
  std::vector<Amount> allocates, frees;
  std::vector<uint32_t> rank;
  std::vector<uint32_t> first;      ///< Of the op's slots, one a microbatch.
  std::vector<Time> work;           ///< Of all actions, by rank.
  std::vector<Amount> memoryBudget; ///< By rank;
  std::vector<Amount> claim;     ///< what a microbatch needs between F and I,
  std::vector<Amount> transient; ///< and what actions take for a moment.
  uint32_t numActions = 0;       ///< And slots.
  uint32_t maxChunks = 0;        ///< On a rank.
  Time period = 0;               ///< The work of a microbatch on a rank.
  std::vector<Time> roundTrip;   ///< By stage, as in UncontendedTimes.

private:
  bool hasPolicy(Op op, uint32_t m) const {
    return !saved.empty() && plan->ofStage[stageOf(op)].has(m);
  }
  struct Saved {
    Time time;
    Amount allocates, frees;
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
  /// What was run last, with the changes since.
  const Order &order() const { return sequences; }

  /// Of the last run that ended.
  Time endOf(Op op, uint32_t microbatch) const {
    return longest[Head][problem.first[op] + microbatch];
  }
  Time startOf(Op op, uint32_t microbatch) const {
    return endOf(op, microbatch) - problem.timeOf(op, microbatch);
  }
  /// From the start of an action to the end of the order, as computeTails()
  /// finds it. O(actions).
  Time tailOf(Op op, uint32_t microbatch) const {
    return longest[Tail][problem.first[op] + microbatch];
  }
  void computeTails();
  /// Moves an action of a rank from one place to another.
  void shift(uint32_t rank, size_t from, size_t to);
  /// Runs the order again after changes in these places of a rank alone;
  /// nothing, once something ends after `limit`. O(actions that end at another
  /// time).
  std::optional<Time> update(uint32_t rank, size_t first, size_t last,
                             Time limit);
  void undo(); ///< What update() did, but not the changes.
  void updateTails(uint32_t rank, size_t first, size_t last);
  uint64_t steps = 0; ///< That updates have taken.
  /// By rank and place in its word.
  const std::vector<uint32_t> &microbatches(uint32_t rank) const {
    return microbatchOf[rank];
  }
  /// The place of an action in the word of its rank.
  uint32_t positionOf(Op op, uint32_t microbatch) const {
    return positions[problem.first[op] + microbatch];
  }
  /// The rank that ends last, or takes longest.
  uint32_t lastRank() const { return last; }
  /// By how much the spans of ranks are above the bound, all together.
  Time excess() const { return excessSpan; }

private:
  /// The longest path to the end of an action, or from its start.
  enum Side { Head, Tail };

  Time valueOf();
  Time longestPath(Side side, Op op, uint32_t microbatch) const;
  bool relax(Side side, uint32_t rank, size_t first, size_t last, Time limit);
  void push(Op op, uint32_t microbatch);

  const Problem &problem;
  Order sequences;
  std::array<std::vector<Time>, 2> longest; ///< By side.
  std::vector<Time> free;
  std::vector<std::pair<Op, uint32_t>> topological; ///< The last first.
  std::vector<std::pair<Op, uint32_t>> changing;    ///< In relax(): a queue
  std::vector<char> isChanging;                     ///< of those to look at,
  std::vector<std::pair<uint32_t, Time>> before;    ///< and paths as they were.
  std::vector<uint32_t> positions, next, at, work;
  std::vector<uint64_t> waitsFor; ///< The slot that a rank is blocked on.
  std::vector<std::vector<uint32_t>> microbatchOf;
  uint32_t last = 0;
  Time excessSpan = 0;
};

/// Whether each part follows the one that it needs, by counting, and the rank
/// keeps to its room. O(actions of the rank).
bool isValid(const Problem &problem, uint32_t rank, const OpSequence &sequence);

} // namespace ppcc::synthesis
