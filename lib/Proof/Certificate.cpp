// What of a certificate is shown.
#include "ppcc/Proof/Certificate.h"
#include "ppcc/Support/CheckedInt.h"

using namespace ppcc;
using namespace ppcc::proof;

std::optional<Affine> Evidence::growthOf(size_t param) const {
  int64_t first, second;
  if (next.empty() || !llvm::to_integer(next[param].value, second) ||
      !llvm::to_integer(head.params()[param].value, first) || first == second)
    return std::nullopt;
  return Affine{2 * first - second, second - first};
}

/// What is wrong with the rows and their order on one transport.
static std::string faultOf(const Evidence &evidence, const Shown &shown) {
  bool byData = shown.transport == "data";
  auto transport = byData ? std::nullopt : findTransport(shown.transport);
  if (!byData && !transport)
    return "`" + shown.transport + "` is no transport";
  const Template &program = byData ? evidence.byData : evidence.carried;
  if (program.ranks.empty())
    return "there are no messages for " + shown.transport;
  if (!haveSameActions(program, evidence.byData))
    return "there are other actions with messages";
  auto checker = Checker::of(program, byData ? nullptr : &*transport);
  if (Finding found = checker->complete(); !found)
    return found.why;
  if (!byData)
    if (Finding found = checker->matched(); !found)
      return found.why;
  return checker->forward(shown.order).why;
}

/// What is wrong with the memory that ranks hold.
static std::string faultOfMemory(const Evidence &evidence) {
  const Template &program = evidence.byData;
  if (!evidence.head.costs().has({Cost::MemoryLimit}))
    return "";
  if (evidence.rooms.size() != program.ranks.size())
    return "nothing shows the memory";
  for (size_t rank = 0; rank != program.ranks.size(); ++rank)
    for (Affine peak : peaksOf(program.ranks[rank], evidence.holdings[rank]))
      if (!isNatural(evidence.rooms[rank] - peak, program.last))
        return fmt::format("rank {} holds more than it may", rank);
  return "";
}

static std::string faultOfMakespan(const Claim &claim,
                                   const std::string &first) {
  const Evidence &evidence = *claim.evidence;
  if (!evidence.times)
    return "nothing shows the makespan";
  bool byData = first == "data";
  auto transport = byData ? std::nullopt : findTransport(first);
  auto shown = Checker::of(byData ? evidence.byData : evidence.carried,
                           byData ? nullptr : &*transport)
                   ->makespan(*evidence.times, evidence.durations);
  if (!shown)
    return "the times are not such that each action waits";
  Formula formula =
      Formula::of(shown->value, evidence.base, evidence.step, cost::unit);
  formula.isExact = shown->isExact || !claim.makespan->isExact;
  Formula wanted = *claim.makespan;
  wanted.isExact = true;
  return formula == wanted ? "" : "the makespan is another";
}

/// Whether actions of one kind and stage that stand alone take the same time
/// wherever they stand.
static bool areConsistent(const Template &program,
                          const std::vector<std::vector<Time>> &durations) {
  std::map<std::tuple<size_t, size_t, size_t, size_t>, Time> known;
  for (auto [rows, times] : llvm::zip(program.ranks, durations))
    for (size_t i = 0; i != rows.size(); ++i) {
      const Row &row = rows[i];
      if (row.joined || (i + 1 != rows.size() && rows[i + 1].joined))
        continue;
      auto [same, isNew] = known.try_emplace(
          {row.kind.value, row.pipe.value, row.stage.value, row.peer.value},
          times[i]);
      if (same->second != times[i])
        return false;
    }
  return true;
}

static std::string faultOfClaim(const Claim &claim,
                                const Certificate &certificate) {
  if (!claim.evidence)
    return "there is no evidence";
  const Evidence &evidence = *claim.evidence;
  bool isOne = claim.to == claim.from;
  if (((!isOne || claim.from == evidence.base) &&
       evidence.step != claim.modulus) ||
      (claim.from - evidence.base) % evidence.step != 0 ||
      claim.from % claim.modulus != claim.residue)
    return "the evidence is of other numbers";
  if (claim.verdict != "right" && claim.verdict != "wrong")
    return "the evidence is of another verdict";
  if (claim.verdict == "wrong") {
    return !evidence.circle.empty() &&
                   Checker::of(evidence.byData, nullptr)
                       ->isCircle(evidence.circle,
                                  (claim.from - evidence.base) / evidence.step)
               ? ""
               : "the events do not wait in a circle";
  }
  if (claim.from != evidence.base)
    return "the evidence is of other numbers";
  std::set<std::string> seen;
  for (const Shown &shown : evidence.shown) {
    if (std::string fault = faultOf(evidence, shown); !fault.empty())
      return shown.transport + ": " + fault;
    seen.insert(shown.transport);
  }
  if (!seen.count("data"))
    return "nothing is shown by data";
  if (std::string fault = faultOfMemory(evidence); !fault.empty())
    return fault;
  // An order of all actions together is one of their messages on any transport,
  // if the compiler chooses theirs by it; then the reason says so.
  bool isProjected = StringRef(claim.reason).starts_with("by data;");
  for (const std::string &transport : certificate.transports)
    if (!seen.count(transport) && !isProjected)
      return "nothing is shown for " + transport;
  if (!claim.makespan)
    return "";
  if (!areConsistent(certificate.transports.front() == "data"
                         ? evidence.byData
                         : evidence.carried,
                     evidence.durations))
    return "an action takes several times";
  return faultOfMakespan(claim, certificate.transports.front());
}

std::string ppcc::proof::faultOf(const Claim &claim,
                                 const Certificate &certificate) {
  if (certificate.transports.empty())
    return "there is no transport";
  try {
    return faultOfClaim(claim, certificate);
  } catch (const std::overflow_error &) {
    return "a number is too large";
  }
}

/// The first number of the remainder of a claim.
static int64_t firstOf(const Claim &claim, int64_t from) {
  return from + *floorMod(claim.residue - from, claim.modulus);
}

/// Whether some number lies in both.
static bool overlap(const Claim &a, const Claim &b) {
  int64_t gcd = std::gcd(a.modulus, b.modulus);
  if ((a.residue - b.residue) % gcd != 0)
    return false;
  int64_t low = std::max(a.from, b.from);
  if ((a.to && *a.to < low) || (b.to && *b.to < low))
    return false;
  // One that both have comes within so many numbers.
  __int128 period = __int128(a.modulus / gcd) * b.modulus;
  for (__int128 at = firstOf(a, low); at < low + period; at += a.modulus) {
    if ((a.to && at > *a.to) || (b.to && at > *b.to))
      return false;
    if (at % b.modulus == b.residue)
      return true;
  }
  return false;
}

std::string ppcc::proof::faultOf(const Certificate &certificate) {
  const auto &claims = certificate.claims;
  // Numbers are counted up to where all that ends has ended, and one period
  // further, in which what does not end must fill each number once.
  __int128 period = 1, last = 0, count = 0;
  for (const Claim &claim : claims) {
    last = std::max<__int128>(last, claim.to.value_or(claim.from));
    if (!claim.to)
      period = std::lcm(int64_t(period), claim.modulus);
    if (period > 1'000'000)
      return "the remainders have no common period that is small";
  }
  if (last > int64_t(1) << 60)
    return "a number is too large";
  last += period;
  for (size_t i = 0; i != claims.size(); ++i) {
    for (size_t k = 0; k != i; ++k)
      if (overlap(claims[i], claims[k]))
        return fmt::format("the ranges from {} and {} overlap", claims[k].from,
                           claims[i].from);
    const Claim &claim = claims[i];
    __int128 end = claim.to ? *claim.to : last;
    int64_t first = firstOf(claim, claim.from);
    if (first <= end)
      count += (end - first) / claim.modulus + 1;
  }
  return count == last ? "" : "some numbers lie in no range";
}
