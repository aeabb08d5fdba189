// Programs of many microbatches, by way of a proof about all of them.
#include "ppcc/Analysis/Report/PeakUsage.h"
#include "ppcc/Basic/Diagnostics/Prove.h"
#include "ppcc/Proof/Instance.h"
#include "ppcc/Prove/Prove.h"
#include "ppcc/Transforms/Passes.h"

using namespace ppcc;

/// From which M on it may be worth a proof.
static constexpr int64_t minMicrobatches = 2000;

/// The sample's head, and the values that its parameters have in n.
static std::optional<Program> headOf(const ProgramFamily &family, int64_t n) {
  Program program = family.sample.program.withRows(Rows());
  std::vector<ProgramParam> &params = program.editHead().params;
  for (auto [i, param] : llvm::enumerate(params)) {
    if (auto value = family.programs->paramFormula(i))
      param.value = fmt::format("{}", int64_t(value->at(n)));
    else if (param.value != family.programs->secondParams[i].value)
      return std::nullopt;
  }
  return program;
}

std::optional<Program> ProgramFamily::at(int64_t n, uint64_t maxActions) const {
  auto program = headOf(*this, n);
  if (!program || proof::numRows(programs->withMessages, n) > maxActions ||
      !proof::instantiate(programs->withMessages, n, *program).empty())
    return std::nullopt;
  program->setFacts(sample.program.facts());
  return program;
}

namespace {

/// Continues numbers of two programs to those of one that is `factor` times as
/// far behind the second as that is behind the first, and one time more.
struct Extrapolation {
  int64_t factor;
  bool isGood = true;

  uint32_t operator()(uint32_t first, uint32_t second) {
    __int128 value = first + __int128(int64_t(second) - first) * factor;
    isGood &= value >= 0 && value <= UINT32_MAX;
    return static_cast<uint32_t>(value);
  }
};

} // namespace

/// The rows of two programs with loops, continued. What comes of it is to be
/// checked.
static std::optional<Rows>
extrapolate(const Program &first, const Program &second, Extrapolation &line) {
  if (first.size() != second.size() ||
      first.loops().size() != second.loops().size())
    return std::nullopt;
  Rows result;
  for (RankId rank : first.ranks()) {
    result.beginRank();
    if (first.size(rank) != second.size(rank))
      return std::nullopt;
    for (ActionId row : first.rows(rank)) {
      Action action = first[row];
      action.microbatch = line(action.microbatch, second[row].microbatch);
      result.append(action);
    }
  }
  for (auto [a, b] : llvm::zip(first.loops(), second.loops())) {
    Loop loop = a;
    loop.count = line(a.count, b.count);
    result.loops.push_back(loop);
  }
  return result;
}

static std::optional<PeakUsage>
extrapolate(PeakUsage first, const PeakUsage &second, Extrapolation &line) {
  if (first.byEdge.size() != second.byEdge.size())
    return std::nullopt;
  for (auto [a, b] : llvm::zip(first.buffers, second.buffers))
    a = line(a, b);
  for (auto [a, b] : llvm::zip(first.activations, second.activations))
    a = line(a, b);
  for (auto [a, b] : llvm::zip(first.byEdge, second.byEdge)) {
    PeakUsage::EdgeBuffers edge = a;
    a.peak = line(a.peak, b.peak);
    edge.peak = b.peak;
    line.isGood &= edge == b;
  }
  return first;
}

bool ProgramFamily::roll(uint64_t maxActions) {
  // What a rank holds at most is the largest of functions of n with whole
  // slopes and constants up to `most`: after twice as much it is always the
  // same one. So it is with the loops that save the most.
  int64_t largest = 0;
  for (const auto &rows : programs->withMessages.ranks) {
    largest = std::max<int64_t>(largest, rows.size());
    for (const proof::Row &row : rows)
      if (row.microbatch.c != Action::noMicrobatch)
        largest = std::max(largest, std::abs(row.microbatch.c));
  }
  // They may take turns in how they are cut.
  for (int64_t step : {1, 2, 3, 4}) {
    int64_t from = 2 * largest + 4;
    from += ((n - from) % step + step) % step;
    Extrapolation line{(n - from) / step};
    if (line.factor < 2)
      return false;
    auto first = at(from, maxActions), second = at(from + step, maxActions),
         whole = headOf(*this, n);
    if (!first || !second || !whole)
      return false;
    auto rows = extrapolate(rolled(*first), rolled(*second), line);
    auto facts = extrapolate(peakUsage(*first), peakUsage(*second), line);
    if (!rows || !facts || !line.isGood ||
        !proof::instantiate(programs->withMessages, n, std::move(*rows), *whole)
             .empty())
      continue;
    whole->setFacts(sample.program.facts());
    sample.program = std::move(*whole);
    keep(std::move(*facts), sample.program);
    return true;
  }
  return false;
}

std::optional<ProgramFamily> ppcc::familyFor(const Request &request,
                                             Session &session) {
  ProveRequest wanted;
  wanted.certifies = true;
  wanted.compile = request;
  auto &params = wanted.compile.params;
  auto given = llvm::find_if(params, [&](const sema::ParamValue &param) {
    return param.name == wanted.free;
  });
  int64_t number;
  if (given == params.end() ||
      StringRef(given->value).getAsInteger(10, number) ||
      number < minMicrobatches || number > int64_t(UINT32_MAX) / 4)
    return std::nullopt;
  const PassRequest &passes = request.passes;
  if (request.until != Request::StopAfter::Done || !passes.passes.empty() ||
      passes.verifiesEach || passes.instrumentation.printAfterAll ||
      !passes.instrumentation.printAfter.empty() ||
      passes.instrumentation.timePasses || !request.rules.empty() ||
      !request.layout.empty() || !request.model.empty() ||
      !request.cluster.empty() || request.torch.fsdp || request.comm.prefetch ||
      request.ignoresUnknownParams || request.microbatches ||
      !request.from.empty() || request.input == "-")
    return std::nullopt;
  params.erase(given);
  wanted.only = number;
  Session quiet(session.sources);
  std::string usageError;
  auto proof = prove(wanted, quiet, usageError);
  if (!proof || proof->unmerged.size() != 1)
    return std::nullopt;
  const ProvenRange &part = proof->unmerged.front();
  if (part.verdict != Verdict::Valid || !part.programs ||
      part.programs->withMessages.ranks.empty())
    return std::nullopt;
  ProgramFamily result;
  result.programs = part.programs;
  result.n = (number - part.from) / part.modulus;
  Request small = request;
  small.rolled = false;
  for (sema::ParamValue &param : small.params)
    if (param.name == wanted.free)
      param.value = fmt::format("{}", part.from + part.modulus);
  // What is to be said of a program is said of that which was asked for.
  if (!compile(small, quiet) || !quiet.found.empty())
    return std::nullopt;
  result.sample = compile(small, session);
  return result;
}

std::optional<proof::ParametricProgram>
ppcc::familiesOf(const Proof &proof, StringRef free, Session &session) {
  proof::ParametricProgram families{
      proof.schedule, free.str(), proof.transports, {}};
  auto none = [&](Location place, StringRef why) {
    session.diags.report<diag::NoProgramForAll>(std::move(place), free, why);
    return std::nullopt;
  };
  // The files and kinds that the numbers of all rows mean.
  using Tables = std::pair<size_t, std::vector<std::string>>;
  auto tablesOf = [](const proof::ResidueFamily &of) {
    Tables tables{of.head.files().size(), {}};
    for (const KindInfo &info : of.head.kinds().rows())
      tables.second.push_back(info.mnemonic);
    return tables;
  };
  std::optional<Tables> shared;
  for (const ProvenRange &part : proof.unmerged) {
    bool isValid = part.verdict == Verdict::Valid;
    bool hasRows = part.programs && !part.programs->withMessages.ranks.empty();
    if (part.verdict == Verdict::Undecided || (isValid && !hasRows))
      return none(part.place,
                  fmt::format("{} = {}: {}", free, part.from,
                              part.reason.empty() ? "no proof was found"
                                                  : part.reason));
    auto isFactor = [](const CostSetting &setting) {
      return rowOf(setting.what).granularity == CostGranularity::Microbatches;
    };
    if (isValid && llvm::any_of(part.programs->head.costs().settings, isFactor))
      return none({}, "the factors of `scale` are known for one number of "
                      "microbatches only");
    if (isValid) {
      Tables tables = tablesOf(*part.programs);
      if (shared && *shared != tables)
        return none({}, fmt::format("files or kinds differ at {} = {}", free,
                                    part.from));
      shared = std::move(tables);
    }
    families.ranges.push_back({part.modulus, part.residue, part.from, part.to,
                               verdictName(part.verdict).str(), part.reason,
                               isValid ? part.programs : nullptr});
  }
  if (!shared)
    return none({}, "each is invalid or excluded");
  return families;
}
