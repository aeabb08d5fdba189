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

/// A workload laid out for the search: columns by Op.
struct Problem {
  static constexpr Amount unlimited = std::numeric_limits<Amount>::max() / 4;
  struct Edge {
    Op op;
    Time latency;
  };

  Problem(const Workload &load, Objective objective);

  uint32_t numOps() const { return static_cast<uint32_t>(count.size()); }
  uint32_t numRanks() const { return static_cast<uint32_t>(room.size()); }
  llvm::ArrayRef<Edge> sources(Op op) const { return slice(sourceEdges, op); }
  llvm::ArrayRef<Edge> readers(Op op) const { return slice(readerEdges, op); }
  /// The least room in which a rank can work: one microbatch.
  Amount leastRoom(uint32_t rank) const;
  /// Whether the rank, or each rank, has it.
  bool hasRoom(uint32_t rank) const {
    return load.ofRank[rank].empty() || leastRoom(rank) <= room[rank];
  }
  bool hasRoom() const;

  const Workload &load;
  Objective objective;
  ResourceBound bound;
  std::vector<uint32_t> count; ///< Of microbatches; 0 where there is no part.
  std::vector<Time> time;
  std::vector<Amount> takes, gives;
  std::vector<uint32_t> rank;
  std::vector<uint32_t> first;    ///< Of the op's slots, one a microbatch.
  std::vector<Amount> room;       ///< By rank.
  uint32_t numActions = 0;        ///< And slots.
  uint32_t mostChunks = 0;        ///< On a rank.
  Time period = 0;                ///< The work of a microbatch on a rank.
  std::vector<Time> firstF, away; ///< By stage: the earliest F; from there to
                                  ///< the end of I, when a microbatch is alone.

private:
  struct Edges {
    std::vector<uint32_t> starts{0};
    std::vector<Edge> edges;
  };
  static llvm::ArrayRef<Edge> slice(const Edges &edges, Op op) {
    return llvm::ArrayRef(edges.edges)
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
    return endOf(op, microbatch) - problem.time[op];
  }
  /// By rank and place in its word.
  llvm::ArrayRef<uint32_t> microbatches(uint32_t rank) const {
    return mbs[rank];
  }
  /// The place of an action in the word of its rank.
  uint32_t placeOf(Op op, uint32_t microbatch) const {
    return places[problem.first[op] + microbatch];
  }
  /// The rank that ends last, or takes longest.
  uint32_t lastRank() const { return last; }

private:
  const Problem &problem;
  std::vector<Time> ends, free;
  std::vector<uint32_t> places, next, at, work;
  std::vector<uint64_t> waitsFor; ///< The slot that a rank is blocked on.
  std::vector<std::vector<uint32_t>> mbs;
  uint32_t last = 0;
};

/// Whether each part follows the one that it needs, by counting, and the rank
/// keeps to its room. O(actions of the rank).
bool isValid(const Problem &problem, uint32_t rank, const Word &word);

/// The most that a rank holds. O(actions of the rank).
Amount peakOf(const Problem &problem, uint32_t rank, const Word &word);

} // namespace ppcc::synthesis
