// Judges a schedule for every number of microbatches.
#pragma once

#include "ppcc/Compiler/Compiler.h"
#include "ppcc/Proof/Checker.h"

namespace ppcc {

/// What to prove.
struct ProveRequest {
  Request compile;        ///< Without a value for the free parameter.
  std::string free = "M"; ///< That stands for the microbatches.
  bool explains = false;  ///< With figures.
  bool byData = false;    ///< Judge by data alone, before transports.
};

/// A quotient in its lowest terms, the denominator above 0.
struct Rational {
  int64_t numerator = 0, denominator = 1;
  static Rational of(__int128 numerator, __int128 denominator);
  std::string text() const; ///< `3`, `7/2`.
};

enum class Verdict : uint8_t { Right, Wrong, Excluded, Undecided };
llvm::StringRef verdictName(Verdict verdict);

/// slope M + intercept.
struct Formula {
  Rational slope, intercept;
  bool isExact = false; ///< Else a bound from above.
};

/// What a run takes besides.
struct Figures {
  std::optional<Formula> bubble;      ///< Time in which ranks compute nothing.
  Formula work;                       ///< Time in which they do.
  std::optional<Formula> activations; ///< The most that a rank holds.
  Formula messages;
  /// Actions of ranks, each of which waits for the one before it and the first
  /// for the last of an earlier turn: what limits the steady state.
  std::vector<std::string> limit;
};

/// Numbers of microbatches, from..to, of one remainder, about which one thing
/// was found.
struct ProvenRange {
  int64_t modulus = 1, residue = 0, from = 1;
  std::optional<int64_t> to; ///< Nothing for no end.
  Verdict verdict = Verdict::Undecided;
  std::optional<Formula> makespan;
  std::optional<Figures> figures; ///< When they are asked for.
  std::string reason;
  Place place; ///< Of the reason, if it has one.
};

/// Each M >= 1 lies in one of the ranges.
struct Proof {
  std::string schedule;
  std::vector<ProgramParam> params; ///< Other than the free one.
  std::vector<std::string> transports;
  std::vector<ProvenRange> ranges; ///< In the order of their first numbers.

  /// Whether no number that the schedule admits is wrong, or undecided.
  bool isRight() const;
};

/// Judges. Nothing after a report, or where the request is misused, which
/// `misuse` then says.
std::optional<Proof> prove(const ProveRequest &request, Session &session,
                           std::string &misuse);

} // namespace ppcc
