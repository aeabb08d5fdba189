// What is claimed of numbers of microbatches, each claim with what shows it, as
// a file that a small program checks.
#pragma once

#include "ppcc/Proof/Checker.h"
#include "ppcc/Proof/Costs.h"
#include "ppcc/Proof/Formula.h"

#include "llvm/Support/Error.h"

namespace ppcc::proof {

/// What programs are judged by: given, not shown.
struct Model : Topology {
  Costs costs;
};

/// A template with numbers for its events.
struct OrderWitness {
  std::string transport; ///< `data` for none.
  Times order;           ///< Each above those of all that it waits for.
};

/// What shows a claim about M = base + step n.
struct Evidence {
  std::shared_ptr<const Model> model;
  int64_t base = 1, step = 1;
  /// The programs, without messages and with them; the latter has no ranks
  /// where only the data is looked at.
  Template withoutMessages, withMessages;
  std::vector<OrderWitness> orderWitnesses;
  /// When everything happens on the transport of the makespan.
  std::optional<Times> times;
  /// Events that wait for each other, for all n from that of the claim on.
  std::vector<Event> cycle;
};

/// What is said of numbers from..to of one remainder.
struct Claim {
  int64_t modulus = 1, residue = 0, from = 1;
  std::optional<int64_t> to; ///< Nothing for no end.
  std::string verdict;       ///< `valid`, `invalid`, `excluded`, `undecided`.
  // Where it is valid:
  std::vector<std::string> transports; ///< On these; `data` for none.
  std::optional<Formula> makespan;     ///< On one of them,
  std::string makespanTransport;       ///< this one.
  bool fits = false;                   ///< No rank holds more than its limit.
  std::string reason;                  ///< For people; nobody checks it.
  std::shared_ptr<const Evidence> evidence; ///< Null for none.

  /// Whether it is more than what the source says.
  bool needsChecking() const { return verdict == "valid" || evidence; }
};

struct Certificate {
  // Names, for people, which nobody checks.
  std::string schedule, free;
  std::vector<std::pair<std::string, std::string>> params;
  /// The models as they stand in the file, where it was read.
  struct Assumption {
    std::shared_ptr<const Model> model;
    std::string text;
  };
  std::vector<Assumption> assumptions;
  /// How many microbatches the programs of M have, of all pipes together, if
  /// that is one formula.
  std::optional<Formula> microbatches;
  std::vector<Claim> claims;
};

/// What the file says, whose numbers refer to what there is; or why it is no
/// certificate. It may claim anything.
llvm::Expected<Certificate> readCertificate(StringRef text);

/// What is wrong with a claim that a schedule is right, or waits in a cycle;
/// nothing where its evidence shows it.
std::string faultOf(const Claim &claim, const Certificate &certificate);
/// What is wrong with the numbers of all claims: each M >= 1 is to lie in one.
std::string faultOf(const Certificate &certificate);

} // namespace ppcc::proof
