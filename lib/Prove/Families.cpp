#include "ppcc/Prove/Families.h"
#include "ppcc/Basic/Diagnostics/Prove.h"

using namespace ppcc;

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
