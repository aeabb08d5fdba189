// Makes an order out of priorities, one action after another.
#pragma once

#include "ppcc/Synthesis/Orders.h"

namespace ppcc::synthesis {

/// When a rank does a W, or waits for a gradient.
struct WeightPolicy {
  /// In quarters of its time: a W is begun only when nothing that is on its way
  /// comes sooner.
  uint32_t weightGap = 0;
  /// A W that would hold up what comes is begun when the rank would have idled
  /// longer than any has otherwise; with patience, a forward likewise.
  bool balancesIdle = false;
  /// In quarters: a forward waits that long for a gradient that comes.
  uint32_t gradientWait = 0;
  uint32_t lag = ~0u;     ///< With more W's than this pending, one is done.
  bool lagByRank = false; ///< With more than the rank's number.
};

/// What a rank does next when it could do several things.
struct Policy : WeightPolicy {
  enum class Prefer : uint8_t { Gradients, Forwards, Alternate, Keys };

  Prefer prefer = Prefer::Gradients;
  bool deepFirst = true; ///< Of several stages, that with the highest number.
  std::vector<uint32_t> caps; ///< By stage: the most microbatches between F and
                              ///< I; empty for any number.

  // Of Prefer::Keys: an action of microbatch m is due at
  // keys[op] + m % group * step + m / group * groupStep.
  std::vector<Time> keys;
  uint32_t group = 1;
  Time step = 0, groupStep = 0;
  /// A forward is begun so long before it is due at most.
  Time early = std::numeric_limits<Time>::max() / 4;
  bool isStrict = false; ///< Ranks keep to the order of keys, and wait.

  Time due(Op op, uint32_t m) const {
    return keys[op] + m % group * step + m / group * groupStep;
  }
};

/// Simulates ranks that follow a policy within their room. No rank gets stuck:
/// a forward is begun only when all microbatches that are away, the oldest
/// first, could still be finished one after another in what is left (the
/// banker's rule; Dijkstra, EWD 108). It succeeds when every rank has
/// minMemory().
class Decoder {
public:
  explicit Decoder(const Problem &problem)
      : problem(problem), ends(problem.numActions) {}

  /// What the objective is about; nothing when it is not below `cutoff`, or
  /// when ranks get stuck, which only strict keys do. O(actions * (chunks *
  /// microbatches away + log ranks)).
  std::optional<Time> run(const Policy &policy, Order &order,
                          Time cutoff = std::numeric_limits<Time>::max());

  /// What all runs have cost: stages that were looked at.
  uint64_t steps() const { return looks; }

private:
  struct Rank {
    Time free = 0;
    Time idle = 0;  ///< Behind its first action.
    Time value = 0; ///< Of the objective, at least: it idles no more.
    Amount live = 0;
    Amount reserved = 0; ///< What those between F and I need.
    bool didForward = false;
    size_t oldestWeight = 0;
    std::vector<uint32_t> weights; ///< Stages whose W is pending, in order;
                                   ///< those before `oldestWeight` are done.
    std::vector<std::pair<Op, uint32_t>> sorted; ///< By strict keys,
    size_t next = 0;                             ///< done before that.
    uint32_t pending() const {
      return static_cast<uint32_t>(weights.size() - oldestWeight);
    }
  };

  /// Begins something or not; when the rank is to be asked again.
  Time decide(uint32_t rank, Time now);
  Time issue(Op op); ///< Its end.
  void updateArrival(Op op);
  bool isSafe(uint32_t stage, uint32_t rank);
  /// Whether `op` comes before what was the best so far.
  bool isBetter(Op op, Op best, bool didForward) const;
  void setWake(Time at, uint32_t rank);

  const Problem &problem;
  const Policy *policy = nullptr;
  Order *order = nullptr;
  std::vector<uint32_t> issued; ///< By op.
  std::vector<Time> ends;       ///< By slot.
  std::vector<Time> arrivals;   ///< Of the next microbatch of each op.
  uint64_t looks = 0;
  Time maxIdle = 0; ///< Of the ranks.
  std::vector<Rank> ranks;
  /// When ranks are to be asked again: a winner tree (Knuth, TAOCP 3, 5.4.1).
  std::vector<std::pair<Time, uint32_t>> wakes;
};

} // namespace ppcc::synthesis
