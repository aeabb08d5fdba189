// Integers that depend on n and on the iteration of a window, and questions to
// them that have one answer for all n and iterations, or none.
#pragma once

#include "ppcc/Family/SymbolicEvaluator.h"
#include "ppcc/Family/SymbolicExpand.h"

namespace ppcc::family {

/// Ends a layout.
struct Stop {
  Outcome outcome;
};

[[noreturn]] inline void stop(Outcome::Kind kind, SourceRange place,
                              std::string why, int64_t value = 0) {
  throw Stop{{kind, value, {}, place, std::move(why), {}}};
}

/// The loop that a window is of.
struct SteadyLoop {
  uint32_t loop = 0;        ///< Its statement,
  PeelCounts peeled;        ///< iterations of it before and after the window,
  int64_t unrollFactor = 0; ///< and in one of the window.
};

/// Where numbers are looked at: n in 0..last and, within a window, iterations
/// 0..n.
class AffineDomain {
public:
  using Number = Affine;
  static constexpr uint64_t maxSteps = 20'000'000;
  [[noreturn]] static void refuse(bool isInvalid, SourceRange place,
                                  std::string why) {
    stop(isInvalid ? Outcome::Kind::Invalid : Outcome::Kind::Undecided, place,
         std::move(why));
  }

  [[noreturn]] static void exclude(SourceRange place, std::string why) {
    stop(Outcome::Kind::Excluded, place, std::move(why));
  }

  int64_t last = proof::unbounded;
  bool inLoop = false;
  SteadyLoop steadyLoop; ///< Of the window.
  const PeelHints *hints = nullptr;

  /// Whether x >= 0.
  bool isNonNegative(Affine x, SourceRange place) const;
  bool isZero(Affine x, SourceRange place) const;
  Affine product(Affine a, Affine b, SourceRange place) const;
  /// Rounded down; and what is left.
  Affine quotient(Affine a, Affine b, SourceRange place) const;
  Affine remainder(Affine a, Affine b, SourceRange place) const;
  /// The value of what must be the same for all n and iterations.
  int64_t constant(Affine x, SourceRange place, StringRef what) const;
  /// Asks for more iterations of the loop before its window, in which what
  /// happens first comes to its end.
  [[noreturn]] void peelPrologue(SourceRange place, std::string why) const;
  /// Asks for so many more iterations before the window, or after it.
  [[noreturn]] void peel(const SteadyLoop &of, int64_t before, int64_t after,
                         SourceRange place, std::string why) const {
    throw Stop{peeledOutcome(of, before, after, place, std::move(why))};
  }
  /// The loop is not unrolled further than this for an iteration that differs.
  static constexpr int64_t maxPeeled = 20'000;
  /// Refuses what may not fit.
  static Affine checked(Affine x, SourceRange place);

private:
  struct Bounds {
    std::optional<__int128> min, max; ///< Nothing for no bound.
  };
  Bounds bounds(Affine x) const;
  Outcome peeledOutcome(const SteadyLoop &of, int64_t before, int64_t after,
                        SourceRange place, std::string why) const;
  [[noreturn]] void split(Affine x, __int128 root, bool isPoint,
                          SourceRange place) const;
  std::optional<int64_t> commonQuotient(Affine a, int64_t b) const;
};

using AbstractValue = SymbolicValue<Affine>;
using AffineEvaluator = SymbolicEvaluator<AffineDomain>;

/// Ends where something of the head depends on the free parameter, other than
/// what is evaluated for all n: what is required, and microbatches.
void requireConstantHead(const AffineEvaluator &terms,
                         const sema::Schedule &schedule);

} // namespace ppcc::family
