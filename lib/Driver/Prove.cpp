// `ppcc prove`: whether a schedule is right for every number of microbatches.
#include "ProofText.h"
#include "ppcc/Support/TextTable.h"

using namespace ppcc;

static void writeVerdicts(const ProveOptions &options, const Proof &proof,
                          const SourceManager &sources, raw_ostream &out) {
  StringRef free = options.free;
  TextTable table({free.str(), "verdict", "makespan", "reason"});
  for (size_t i = 0; i != proof.ranges.size(); ++i) {
    ProvenRange range = proof.ranges[i];
    auto described = [&](const ProvenRange &one) {
      return std::tuple(one.verdict, formulaText(one.makespan, free),
                        reasonText(one, sources));
    };
    // Single numbers in a row about which the same is said.
    while (range.to && range.modulus == 1 && i + 1 != proof.ranges.size() &&
           proof.ranges[i + 1].from == *range.to + 1 &&
           proof.ranges[i + 1].to == proof.ranges[i + 1].from &&
           described(proof.ranges[i + 1]) == described(range))
      range.to = proof.ranges[++i].to;
    table.add({numbersText(range.from, range.modulus, range.to),
               verdictName(range.verdict).str(),
               formulaText(range.makespan, free), reasonText(range, sources)});
  }
  table.print(out);
  out << verdictText(proof, free) << '\n';
}

int ppcc::runProve(const Invocation &call) {
  OptionParser parser(call, "ppcc prove");
  return runProof(
      parser, {"text", "json"}, false, call, "ppcc.proof",
      [](const ProvenRange &, JsonFields &) {}, writeVerdicts);
}
