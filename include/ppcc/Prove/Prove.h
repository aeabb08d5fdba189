// Judges a schedule for every number of microbatches; what follows from that:
// certificates, and programs of many microbatches.
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

  /// Whether the schedule admits a number, and none that is wrong, or
  /// undecided.
  bool isValid() const;
};

/// Judges. Nothing after a report, or where the request is misused, which
/// `usageError` then says.
std::optional<Proof> prove(const ProveRequest &request, Session &session,
                           std::string &usageError);

/// What is claimed, as far as the checker agrees with it: the rest is not
/// claimed.
proof::Certificate certificateOf(const Proof &proof, StringRef free,
                                 const SourceManager &sources);

/// Writes it as docs/every-m.md describes it.
void writeCertificate(const proof::Certificate &certificate, raw_ostream &out);

/// The programs of a proof with evidence; `free` is its parameter. Nothing
/// after a report that some number that is admitted, and not wrong, has none.
std::optional<proof::ParametricProgram>
familiesOf(const Proof &proof, StringRef free, Session &session);

/// Programs of one family.
struct ProgramFamily {
  Compiled sample; ///< The one of n = 1, compiled as any.
  std::shared_ptr<const proof::ResidueFamily> programs;
  int64_t n = 0; ///< That which was asked for.

  /// The program of n; nothing where it has more than `maxActions`.
  std::optional<Program> at(int64_t n, uint64_t maxActions) const;
  /// Makes the sample that which was asked for, with loops, and what is known
  /// of all of its actions, from two smaller ones and checked against the
  /// family; no other is laid out. False where that is no gain, or loops do not
  /// grow evenly; the smaller ones have at most `maxActions`.
  bool roll(uint64_t maxActions);
};

/// The family of a request for a large M, when it is proven; nothing, and no
/// report, where it is not, or would take longer than to compile.
std::optional<ProgramFamily> familyFor(const Request &request,
                                       Session &session);

/// A schedule, its free parameters, and a proof without ranges.
struct ParsedRequest {
  Compiled compiled; ///< As far as it is checked.
  SmallVector<uint32_t, 2> free;
  Proof proof;
};

/// Of one free parameter, or several with commas. Nothing after a report, or
/// where the request is misused, which `usageError` then says.
std::optional<ParsedRequest> readRequest(const ProveRequest &request,
                                         Session &session,
                                         std::string &usageError);

} // namespace ppcc
