// What the orders of inject-comm share.
#pragma once

#include "ppcc/Analysis/Cost/Durations.h"
#include "ppcc/Analysis/Index/Dependences.h"
#include "ppcc/Analysis/Run/Inboxes.h"
#include "ppcc/Analysis/Run/TorchSteps.h"
#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/Transforms/Passes.h"

namespace ppcc {

/// Copies the rows of a program into a new one, rank by rank in any
/// interleaving, and places messages among them.
class CommWriter {
public:
  /// `result` is laid out with room for the rows and messages of each rank.
  /// Fills the rows of `times`, unless that is null.
  CommWriter(const Program &program, Rows &result, PlanTimes *times);

  /// What is noted of the rows that are written next.
  void setRowTimes(PlanTimes::OfRow times) { rowTimes = times; }

  /// The next row of `rank` that is not copied yet; end(rank) when all are.
  ActionId next(RankId rank) const { return ActionId(nextRow[rank.value]); }
  bool done(RankId rank) const { return next(rank) == program.end(rank); }

  /// Copies the next row of `rank`, or the whole group that starts there.
  void copyItem(RankId rank);
  /// Appends a send of `producer`'s slot to `rank`; `joined` to the message
  /// before it, whose phase it then has.
  void send(const Action &producer, RankId rank, uint8_t slotBit,
            StageId reader, bool joined = false);
  /// Appends its receive to the rank of `reader`.
  void receive(const Action &producer, uint8_t slotBit, StageId reader,
               bool joined = false);
  /// Appends both.
  void message(const Action &producer, RankId rank, uint8_t slotBit,
               StageId reader) {
    send(producer, rank, slotBit, reader);
    receive(producer, slotBit, reader);
  }

private:
  void append(RankId rank, Action row, bool joined);
  void set(uint32_t at, const Action &row);

  const Program &program;
  Rows &result;
  PlanTimes *times;
  PlanTimes::OfRow rowTimes;
  std::vector<uint32_t> nextRow, cursor;
  KindId sendOf[slot::count], recvOf[slot::count];
};

/// Empty rows, as many for each rank as it has with its messages; nothing,
/// after a diagnostic, when the program has some already, is far too short, or
/// too long.
std::optional<Rows> allocateWithMessages(const Program &program,
                                         const ProgramIndex &index,
                                         DiagnosticEngine &diags,
                                         SourceManager &sources);

/// What an order works with.
struct CommPlan {
  const Program &program;
  const ProgramIndex &index;
  const Durations &durations;
  CommWriter &writer;
  uint64_t messages;                ///< That the edges between ranks need.
  std::optional<uint32_t> prefetch; ///< Receives of an edge that may be posted
                                    ///< ahead of their readers.
  std::optional<TorchTarget> torch; ///< Its steps take turns in a sweep.
  PlanTimes *times;                 ///< To be filled, unless it is null.
  DiagnosticEngine &diags;
  SourceManager &sources;
};

/// Reports what `rank` waits for.
void reportStuck(const CommPlan &plan, const Inboxes &inboxes, RankId rank);

/// See CommOrderInfo::plan.
using PlanMessages = bool(CommPlan &plan);

inline constexpr PlanMessages *noPlan = nullptr;
PlanMessages planReadyTime, planSweep, planLate;

/// Puts what `place` makes of a program, with its messages, in its place.
///
/// `place` does not see the rows that must stand after a message of their
/// stage, by a rule of their kind. Each comes back after the last message that
/// it follows; at the end of its rank where there is none, for Verify to
/// report. O(actions).
PassResult placeAroundFollowers(
    Program &program,
    function_ref<std::optional<Program>(const Program &)> place);

} // namespace ppcc
