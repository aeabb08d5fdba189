// Judges a schedule for every number of microbatches.
#pragma once

#include "ppcc/Compiler/Compiler.h"
#include "ppcc/Proof/Certificate.h"
#include "ppcc/Proof/ParametricProgram.h"

namespace ppcc {

/// What to prove.
struct ProveRequest {
  Request compile;        ///< Without a value for the free parameter.
  std::string free = "M"; ///< That stands for the microbatches.
  bool explains = false;  ///< With figures.
  bool dataOnly = false;  ///< Judge by data alone, before transports.
  bool certifies = false; ///< With the evidence.
  /// Only what speaks of this number, if that is found without looking at
  /// numbers one by one; there may be no range then.
  std::optional<int64_t> only = {};
};

enum class Verdict : uint8_t { Valid, Invalid, Excluded, Undecided };
StringRef verdictName(Verdict verdict);

/// What a run takes besides.
struct Metrics {
  std::optional<Formula> bubble;      ///< Time in which ranks compute nothing.
  std::optional<Formula> work;        ///< Time in which they do.
  std::optional<Formula> activations; ///< The most that a rank holds,
  std::optional<Formula> memory;      ///< and the most memory.
  Formula messages;
  std::optional<Formula> bytes; ///< Of these messages.
  /// Actions of ranks, each of which waits for the one before it and the first
  /// for the last of an earlier iteration: what limits the steady state.
  std::vector<std::string> bottleneck;
};

/// Numbers of microbatches, from..to, of one remainder, about which one thing
/// was found.
struct ProvenRange {
  int64_t modulus = 1, residue = 0, from = 1;
  std::optional<int64_t> to; ///< Nothing for no end.
  Verdict verdict = Verdict::Undecided;
  std::optional<Formula> makespan;
  std::optional<Metrics> metrics; ///< When they are asked for.
  std::string reason;
  Location place; ///< Of the reason, if it has one.
  // Where they are asked for:
  std::shared_ptr<const proof::Evidence> evidence;
  std::shared_ptr<const proof::ResidueFamily> programs;
};

/// Each M >= 1 lies in one of the ranges.
struct Proof {
  std::string schedule;
  std::vector<ProgramParam> params; ///< Other than the free one.
  std::vector<std::string> transports;
  Units units;                     ///< Of times and memory.
  std::vector<ProvenRange> ranges; ///< In the order of their first numbers.
  /// The same, where evidence is asked for, each as it was proven: remainders
  /// of which one thing is said are not joined.
  std::vector<ProvenRange> unmerged;

  /// Whether no number that the schedule admits is wrong, or undecided.
  bool isValid() const;
};

/// Judges. Nothing after a report, or where the request is misused, which
/// `usageError` then says.
std::optional<Proof> prove(const ProveRequest &request, Session &session,
                           std::string &usageError);

} // namespace ppcc
