// Looks for what shows a claim about statements, for all P and M of their
// region, and checks it.
#pragma once

#include "ppcc/EveryP/Statements.h"

namespace ppcc::every {

/// An action of a class of ranks.
struct RowRef {
  uint32_t unit = 0, row = 0;
  auto operator<=>(const RowRef &) const = default;
};

/// Actions of one rank, from the first iteration of one to the last of the
/// other, that with what must be before and after take as long as the
/// makespan.
struct Witness {
  uint32_t rankClass = 0;
  Form rank; ///< The value of Dim::Rank, of P and M.
  RowRef from, to;
};

/// Chunks of two classes of ranks, of stages that are so far from each other.
struct ChunkPair {
  uint32_t rankClass = 0, chunk = 0, otherRankClass = 0, otherChunk = 0;
  int distance = 0;
  auto operator<=>(const ChunkPair &) const = default;
};

/// An action, by the numbers of the rank and the iteration of another.
struct EventRef {
  uint32_t unit = 0;
  Form rank, iteration;
};

/// Why an action starts no earlier than at its time.
struct CriticalPredecessor {
  enum class Kind : uint8_t {
    Infeasible, ///< There is no such action.
    AtTimeZero, ///< It has the time 0.
    WaitsFor,   ///< It waits for another action, which ends then.
    Split, ///< By whether `test` is non-negative it has one reason or another.
  };
  Kind kind = Kind::Infeasible;
  EventRef source;
  Form test;
  uint32_t yes = 0, no = 0; ///< Further reasons of the unit.
};

/// What is claimed, but for times.
struct Claim {
  std::set<ChunkPair> infeasiblePairs; ///< There are none such.
  /// By class, chunk and slot: the actions that fill it, in the order of their
  /// microbatches.
  std::map<std::tuple<uint32_t, uint32_t, uint8_t>, std::vector<RowRef>>
      producers;
  std::optional<Form> makespan; ///< A bound from above; exact by the witness.
  std::optional<Witness> witness;
  /// By unit, the reasons of its actions, the first for all of them; and an
  /// action of them that ends with the makespan.
  std::map<uint32_t, std::vector<CriticalPredecessor>> criticalPredecessors;
  std::optional<EventRef> last;
};

/// What must be shown: that where all premises are non-negative, `rest` and the
/// times of units together are.
struct Obligation {
  struct Time {
    uint32_t unit = 0;
    int64_t factor = 1;
    Form rank, iteration; ///< Of the action.
  };
  Forms premises;
  Form rest;
  std::vector<Time> times;
};

/// All that must be shown for a claim: every slot is filled once; the time of
/// every action is above those of all that it waits for; the makespan. Throws
/// std::overflow_error, and std::invalid_argument for a claim about what is not
/// there.
std::vector<Obligation> obligations(const Statements &statements,
                                    const Claim &claim);

struct Certificate {
  Claim claim;
  int64_t scale = 1;                    ///< Of times.
  std::vector<Form> times;              ///< By unit: of P, M, Rank and Turn.
  std::vector<Multipliers> multipliers; ///< By obligation.
};

/// What is wrong with a certificate, or nothing: then no rank waits for itself,
/// all work is done once, and the makespan is the one that is claimed.
std::string faultOf(const Statements &statements,
                    const Certificate &certificate);

/// What was found of the statements of a region.
struct SearchResult {
  std::optional<Certificate> certificate; ///< Nothing where none was found,
  std::string why;                        ///< with the reason.
  /// Natural on one side of a line where the makespan is another on each.
  std::optional<Form> splitLine;
};

/// Searches for a certificate, with an exact makespan where `isTimed`. What it
/// gives has been checked. Only where it `maySplit` it gives a line instead.
SearchResult findCertificate(const Statements &statements, bool isTimed,
                             bool maySplit);

} // namespace ppcc::every
