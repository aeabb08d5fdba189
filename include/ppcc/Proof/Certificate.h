// What is claimed of numbers of microbatches, each claim with what shows it, as
// a file that a small program checks.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Proof/Checker.h"
#include "ppcc/Proof/Formula.h"
#include "ppcc/Proof/Memory.h"

#include "llvm/Support/Error.h"

namespace ppcc::proof {

/// A template with numbers for its events.
struct Shown {
  std::string transport; ///< `data` for none.
  Times order;           ///< Each above those of all that it waits for.
};

/// What shows a claim about M = base + step n.
struct Evidence {
  Program head; ///< Without rows.
  int64_t base = 1, step = 1;
  /// The free parameter's programs, without messages and with them; the latter
  /// has no ranks where messages do not settle.
  Template byData, carried;
  std::vector<Shown> shown;
  /// When everything happens on the first transport, and what groups and
  /// messages take.
  std::optional<Times> times;
  std::vector<std::vector<Time>> durations;
  /// Where memory is limited: what the rows of `byData` take, and by rank what
  /// is left beside what it holds at rest.
  Holdings holdings;
  std::vector<int64_t> rooms;
  /// Events that wait for each other, for all n from that of the claim on.
  std::vector<Event> circle;
  // Of the programs, which no claim speaks of.
  std::vector<RankPair> preconnect;
  std::vector<ProgramParam> next; ///< The parameters of n = 2; the head's are
                                  ///< those of 1.

  /// The value of a parameter as a function of n, where that changes it.
  std::optional<Affine> growthOf(size_t param) const;
};

/// Numbers from..to of one remainder, of which one thing is said.
struct Claim {
  int64_t modulus = 1, residue = 0, from = 1;
  std::optional<int64_t> to; ///< Nothing for no end.
  std::string verdict;       ///< `right`, `wrong`, `excluded`, `undecided`.
  std::optional<Formula> makespan;
  std::string reason;
  std::shared_ptr<const Evidence> evidence; ///< Null for none.
};

struct Certificate {
  std::string schedule, free;
  std::vector<ProgramParam> params; ///< Other than the free one.
  std::vector<std::string> transports;
  std::vector<Claim> claims;
};

void writeCertificate(const Certificate &certificate, raw_ostream &out);
/// What it wrote, whose numbers refer to what there is. It may claim anything.
llvm::Expected<Certificate> readCertificate(StringRef text);

/// What is wrong with a claim that a schedule is right, or waits in a circle;
/// nothing where its evidence shows it.
std::string faultOf(const Claim &claim, const Certificate &certificate);
/// What is wrong with the numbers of all claims: each M >= 1 is to lie in one.
std::string faultOf(const Certificate &certificate);

} // namespace ppcc::proof
