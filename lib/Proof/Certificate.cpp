// What of a certificate is shown.
#include "ppcc/Proof/Certificate.h"
#include "ppcc/Support/CheckedInt.h"

using namespace ppcc;
using namespace ppcc::proof;

namespace {

/// The checker of a transport, or of the data alone.
struct TransportChecker {
  TransportChecker(const Evidence &evidence, StringRef name)
      : isDataOnly(name == "data"), transport(findTransport(name)),
        program(isDataOnly ? evidence.withoutMessages : evidence.withMessages) {
    if (isDataOnly || (transport && !program.ranks.empty()))
      checker = Checker::of(program, isDataOnly ? nullptr : &*transport);
  }

  bool isDataOnly;
  std::optional<Transport> transport;
  const Template &program;
  std::unique_ptr<const Checker> checker; ///< Null where there is nothing.
};

} // namespace

/// What is wrong with the rows and their order on one transport.
static std::string faultOf(const Evidence &evidence,
                           const OrderWitness &witness) {
  TransportChecker on(evidence, witness.transport);
  if (!on.isDataOnly && !on.transport)
    return "it is not a transport";
  if (!on.checker)
    return "there are no messages";
  if (!haveSameActions(on.program, evidence.withoutMessages))
    return "there are other actions with messages";
  if (Finding found = on.checker->checkComplete(); !found)
    return found.why;
  if (!on.isDataOnly)
    if (Finding found = on.checker->checkMatching(); !found)
      return found.why;
  return on.checker->checkAcyclic(witness.order).why;
}

/// What is wrong with the memory that ranks hold.
static std::string faultOfMemory(const Evidence &evidence) {
  const Costs &costs = evidence.model->costs;
  const Template &program = evidence.withoutMessages;
  if (costs.limits.empty())
    return "no memory is limited";
  auto memoryDeltas = memoryDeltasOf(program, costs);
  if (!memoryDeltas)
    return "the memory that actions hold is not determined";
  for (size_t rank = 0; rank != program.ranks.size(); ++rank)
    for (Affine peak : peaksOf(program.ranks[rank], (*memoryDeltas)[rank]))
      if (!isNonNegative(memoryBudgetOf(costs, rank) - peak, program.last))
        return fmt::format("rank {} exceeds its memory limit", rank);
  return "";
}

static std::string faultOfMakespan(const Claim &claim) {
  const Evidence &evidence = *claim.evidence;
  TransportChecker on(evidence, claim.makespanTransport);
  if (!evidence.times || !on.checker)
    return "nothing shows the makespan";
  auto result = on.checker->makespan(*evidence.times, evidence.model->costs);
  if (!result)
    return "the times do not respect all dependences";
  Formula formula =
      Formula::of(result->value, evidence.base, evidence.step, timeUnit);
  formula.isExact = result->isExact || !claim.makespan->isExact;
  Formula wanted = *claim.makespan;
  wanted.isExact = true;
  return formula == wanted ? "" : "the makespan is another";
}

/// What is wrong with the numbers that the evidence is of.
static std::string faultOfNumbers(const Claim &claim,
                                  const std::optional<Formula> &microbatches) {
  const Evidence &evidence = *claim.evidence;
  bool isOne = claim.to == claim.from;
  bool isInvalid = claim.verdict == "invalid"; // From some n on.
  if (((!isOne || claim.from == evidence.base) &&
       evidence.step != claim.modulus) ||
      (claim.from - evidence.base) % evidence.step != 0 ||
      claim.from % claim.modulus != claim.residue ||
      (!isInvalid && claim.from != evidence.base))
    return "the evidence is of other numbers";
  if (!microbatches)
    return "";
  Affine count;
  for (const MicrobatchRange &range : evidence.withoutMessages.pipes)
    count = count + range.count;
  if (!claim.to || !isOne)
    return Formula::of(count, evidence.base, evidence.step, 1) == *microbatches
               ? ""
               : "the programs have other microbatches";
  int64_t n = (claim.from - evidence.base) / evidence.step;
  return microbatches->slope * Rational(claim.from) + microbatches->intercept ==
                 Rational(count.at(n))
             ? ""
             : "the program has other microbatches";
}

static std::string faultOfClaim(const Claim &claim,
                                const Certificate &certificate) {
  bool isValid = claim.verdict == "valid";
  if (!claim.evidence)
    return "there is no evidence";
  const Evidence &evidence = *claim.evidence;
  if (!isValid && (claim.verdict != "invalid" || claim.makespan || claim.fits ||
                   !claim.transports.empty()))
    return "the evidence is of another verdict";
  if (std::string fault = faultOfNumbers(claim, certificate.microbatches);
      !fault.empty())
    return fault;
  if (!isValid)
    return Checker::of(evidence.withoutMessages, nullptr)
                   ->isCycle(evidence.cycle,
                             (claim.from - evidence.base) / evidence.step)
               ? ""
               : "the events do not wait in a cycle";
  std::set<std::string> seen;
  for (const OrderWitness &witness : evidence.orderWitnesses) {
    if (std::string fault = faultOf(evidence, witness); !fault.empty())
      return witness.transport + ": " + fault;
    seen.insert(witness.transport);
  }
  if (claim.transports.empty())
    return "it names no transport";
  for (const std::string &transport : claim.transports)
    if (!seen.count(transport))
      return "no proof for " + transport;
  if (claim.fits)
    if (std::string fault = faultOfMemory(evidence); !fault.empty())
      return fault;
  if (!claim.makespan)
    return "";
  if (!seen.count(claim.makespanTransport))
    return "the makespan is that of another transport";
  return faultOfMakespan(claim);
}

std::string ppcc::proof::faultOf(const Claim &claim,
                                 const Certificate &certificate) {
  try {
    return faultOfClaim(claim, certificate);
  } catch (const std::overflow_error &) {
    return "a number is too large";
  }
}

/// The first number of the remainder of a claim, from there on.
static int64_t firstOf(const Claim &claim, int64_t from) {
  return from + *floorMod(claim.residue - from, claim.modulus);
}

/// The first number that is in both, where neither ends.
static std::optional<__int128> firstCommonNumber(const Claim &a,
                                                 const Claim &b) {
  // By the Chinese remainder theorem, with the inverse of a.modulus.
  int64_t u = 1, v = 0, r = a.modulus, s = b.modulus;
  while (s != 0) {
    int64_t q = r / s;
    std::tie(r, s) = std::pair(s, r - q * s);
    std::tie(u, v) = std::pair(v, u - q * v);
  }
  if ((b.residue - a.residue) % r != 0)
    return std::nullopt;
  int64_t period = b.modulus / r;
  __int128 turns = __int128((b.residue - a.residue) / r) * u % period;
  __int128 number = a.residue + turns * a.modulus;
  __int128 both = __int128(period) * a.modulus;
  __int128 after = std::max(a.from, b.from) - number;
  return number +
         (after <= 0 ? after / both : (after + both - 1) / both) * both;
}

static bool overlap(const Claim &a, const Claim &b) {
  auto number = firstCommonNumber(a, b);
  return number && (!a.to || *number <= *a.to) && (!b.to || *number <= *b.to);
}

/// Claims do not overlap if no number is in two of them; then those without an
/// end hold all large numbers if their shares of these add up to all, and those
/// before if there are as many of them.
static std::string faultOfNumbers(ArrayRef<Claim> claims) {
  static constexpr size_t most = 10'000;
  if (claims.size() > most)
    return fmt::format("there are more than {} ranges", most);
  __int128 last = 0, count = 0;
  std::map<int64_t, int64_t, std::greater<>> unbounded; // By modulus.
  for (size_t i = 0; i != claims.size(); ++i) {
    const Claim &claim = claims[i];
    for (size_t k = 0; k != i; ++k)
      if (overlap(claim, claims[k]))
        return fmt::format("the ranges from {} and {} overlap", claims[k].from,
                           claim.from);
    last = std::max<__int128>(last, claim.to.value_or(claim.from));
    if (!claim.to)
      ++unbounded[claim.modulus];
  }
  Rational share;
  for (auto [modulus, number] : unbounded)
    share = share + Rational(number, modulus);
  for (const Claim &claim : claims) {
    __int128 end = claim.to ? *claim.to : last;
    int64_t first = firstOf(claim, claim.from);
    if (first <= end)
      count += (end - first) / claim.modulus + 1;
  }
  return count == last && share == Rational(1) ? ""
                                               : "some numbers are in no range";
}

std::string ppcc::proof::faultOf(const Certificate &certificate) {
  try {
    return faultOfNumbers(certificate.claims);
  } catch (const std::overflow_error &) {
    return "a number is too large";
  }
}
