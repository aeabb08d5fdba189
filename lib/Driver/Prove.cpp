// `ppcc prove`: whether a schedule is right for every number of microbatches.
#include "ProofText.h"
#include "ppcc/Support/TextTable.h"

using namespace ppcc;

static void writeVerdicts(const Proof &proof, StringRef free,
                          const SourceManager &sources, raw_ostream &out) {
  llvm::json::OStream json(out, 1);
  writeProof(proof, "ppcc.proof", free, json, [&](const ProvenRange &range) {
    writeFormula(json, "makespan", range.makespan);
    json.attribute("reason", reasonText(range, sources));
  });
  out << '\n';
}

static void writeText(const Proof &proof, StringRef free,
                      const SourceManager &sources, raw_ostream &out) {
  TextTable table({free.str(), "verdict", "makespan", "reason"});
  for (size_t i = 0; i != proof.ranges.size(); ++i) {
    ProvenRange range = proof.ranges[i];
    auto told = [&](const ProvenRange &one) {
      return std::tuple(one.verdict, formulaText(one.makespan, free),
                        reasonText(one, sources));
    };
    // Single numbers in a row about which the same is said.
    while (range.to && range.modulus == 1 && i + 1 != proof.ranges.size() &&
           proof.ranges[i + 1].from == *range.to + 1 &&
           proof.ranges[i + 1].to == proof.ranges[i + 1].from &&
           told(proof.ranges[i + 1]) == told(range))
      range.to = proof.ranges[++i].to;
    table.add({numbersText(range), verdictName(range.verdict).str(),
               formulaText(range.makespan, free), reasonText(range, sources)});
  }
  table.print(out);
  out << fmt::format("{} is {} every {} that it admits, on {}\n",
                     proof.schedule,
                     proof.isRight() ? "right for" : "not proven for", free,
                     llvm::join(proof.transports, ", "));
}

int ppcc::runProve(ArrayRef<const char *> args, Session::Files fs,
                   raw_ostream &out, raw_ostream &err) {
  OptionParser parser(
      "ppcc prove",
      "Says of a schedule for which numbers of microbatches it is right");
  return runProof(parser, {"text", "json"}, false, args, std::move(fs), out,
                  err,
                  [](const ProveOptions &options, const Proof &proof,
                     const SourceManager &sources, raw_ostream &s) {
                    (options.format == "json" ? writeVerdicts : writeText)(
                        proof, options.free, sources, s);
                  });
}
