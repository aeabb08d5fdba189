// How long a program takes whose times differ from run to run.
#pragma once

#include "ppcc/Analysis/Cost/Durations.h"
#include "ppcc/IR/Transport.h"

namespace ppcc {

/// What `jitter` of the costs makes of times: each is multiplied by normal
/// random numbers with a mean of 1, of at least 0.05: one for the action, one
/// for its microbatch and one for its rank; a message by one of its own. The
/// same run has the same numbers for actions of one kind, stage and microbatch
/// in every program, so orders can be compared; all machines have the same.
/// O(kinds * stages + settings) to make.
class Jitter {
public:
  explicit Jitter(const Program &program);

  /// Whether any time differs.
  bool isAny() const { return any; }
  /// No random time is more often as long as before.
  static constexpr int maxFactor = 7 * 7 * 7 + 1;
  /// Goes on to another run.
  void begin(uint64_t run) { seed = run; }
  /// Makes all times 2^bits times as short.
  void coarsen(int bits) { shift = bits; }

  /// Of an action, or the group that it begins, or a part of that.
  Time ofAction(Time time, const Action &action, RankId rank) const;
  Time ofMessage(Time time, PipeId pipe, StageId from, StageId to,
                 uint32_t microbatch) const;

private:
  Time vary(Time time, int64_t spread, uint64_t key) const;
  Time coarse(Time time) const {
    return shift == 0 ? time : (time + (Time(1) << (shift - 1))) >> shift;
  }

  StageNumbering stages;
  std::vector<int64_t> ofKind; ///< By kind and stage.
  int64_t microbatch = 0, rank = 0, message = 0;
  bool any = false;
  uint64_t seed = 0;
  int shift = 0;
};

/// The makespans of several runs.
struct Makespans {
  unsigned runs = 0;
  Time mean = 0;
  Time high = 0; ///< At least 95 % of the runs take no longer.
};

/// On a transport; by data alone for a program without messages. Nothing
/// without jitter, or if it does not reach its end. O(actions + edges) a run:
/// 100 from the first on, or fewer of large programs, at least 10.
std::optional<Makespans> makespansOf(const Program &program,
                                     const Transport &transport,
                                     uint64_t first = 0);

} // namespace ppcc
