// `ppcc explain`: what a schedule takes, as formulas of the number of
// microbatches.
#include "ProofText.h"
#include "ppcc/Support/TextTable.h"

using namespace ppcc;

static void writeFigures(const ProvenRange &range, llvm::json::OStream &json) {
  const Figures none, &figures = range.figures ? *range.figures : none;
  auto known = [&](const Formula &formula) {
    return range.figures ? std::optional(formula) : std::nullopt;
  };
  writeFormula(json, "work", figures.work);
  writeFormula(json, "bubble", figures.bubble);
  writeFormula(json, "activations", figures.activations);
  writeFormula(json, "memory", figures.memory);
  writeFormula(json, "messages", known(figures.messages));
  writeFormula(json, "bytes", figures.bytes);
  json.attribute("limit", llvm::json::Array(figures.limit));
}

static void writeTable(const ProveOptions &options, const Proof &proof,
                       const SourceManager &sources, raw_ostream &out) {
  StringRef free = options.free;
  // What nobody told, or says nothing new, has no column.
  bool hasMemory = false, hasBytes = false;
  for (const ProvenRange &range : proof.ranges)
    if (const auto &figures = range.figures) {
      hasMemory |= figures->memory && figures->memory != figures->activations;
      hasBytes |= figures->bytes && figures->bytes->slope != Rational();
    }
  auto shown = [&](std::vector<std::string> cells) {
    if (!hasBytes)
      cells.erase(cells.begin() + 6);
    if (!hasMemory)
      cells.erase(cells.begin() + 4);
    return cells;
  };
  TextTable table(shown({free.str(), "makespan", "bubble", "activations",
                         "memory", "messages", "bytes", "limited by"}));
  for (const ProvenRange &range : proof.ranges) {
    if (range.verdict == Verdict::Excluded)
      continue;
    const Figures none, &figures = range.figures ? *range.figures : none;
    table.add(shown({numbersText(range.from, range.modulus, range.to),
                     formulaText(range.makespan, free),
                     formulaText(figures.bubble, free),
                     formulaText(figures.activations, free),
                     formulaText(figures.memory, free),
                     range.figures ? figures.messages.text(free) : "",
                     formulaText(figures.bytes, free),
                     range.verdict == Verdict::Right
                         ? llvm::join(figures.limit, ", ")
                         : verdictName(range.verdict).str() + ": " +
                               reasonText(range, sources)}));
  }
  table.print(out, options.format == "markdown" ? TableStyle::Markdown
                                                : TableStyle::Text);
}

int ppcc::runExplain(const Invocation &call) {
  OptionParser parser(call, "ppcc explain",
                      "Tells what a schedule takes and holds, as formulas of "
                      "the number of microbatches");
  return runProof(parser, {"text", "json", "markdown"}, true, call,
                  "ppcc.explanation", writeFigures, writeTable);
}
