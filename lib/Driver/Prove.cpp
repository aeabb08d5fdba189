// `ppcc prove`: whether a schedule is right for every number of microbatches.
#include "ProofText.h"
#include "ppcc/Support/TextTable.h"

using namespace ppcc;

static void writeVerdicts(const ProveOptions &options, const Proof &proof,
                          const SourceManager &sources, raw_ostream &out) {
  StringRef free = options.free;
  auto makespan = [&](const RangeLine &line) {
    return formulaText(line.said.makespan, free, Quantity::Time, proof.units);
  };
  std::vector<RangeLine> lines = linesOf(proof.ranges, free);
  if (lines.size() == 1 && proof.isValid()) {
    out << verdictText(proof, free);
    if (lines[0].said.makespan)
      out << "; makespan " << makespan(lines[0]);
    out << '\n';
    return;
  }
  TextTable table({free.str(), "verdict", "makespan", "reason"});
  for (const RangeLine &line : lines)
    table.add({line.numbers, verdictName(line.said.verdict).str(),
               makespan(line), reasonText(line.said, sources)});
  table.print(out);
  out << verdictText(proof, free) << '\n';
}

int ppcc::runProve(const Invocation &call) {
  OptionParser parser(call, "ppcc prove");
  return runProof(
      parser, {"text", "json"}, false, call, "ppcc.proof",
      [](const ProvenRange &, JsonFields &) {}, writeVerdicts);
}
