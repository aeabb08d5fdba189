// `ppcc explain`: what a schedule takes, as formulas of the number of
// microbatches.
#include "ProofText.h"
#include "ppcc/Support/TextTable.h"

using namespace ppcc;

static void writeFormulas(const Proof &proof, StringRef free,
                          const SourceManager &sources, raw_ostream &out) {
  llvm::json::OStream json(out, 1);
  writeProof(
      proof, "ppcc.explanation", free, json, [&](const ProvenRange &range) {
        const Figures none, &figures = range.figures ? *range.figures : none;
        auto known = [&](const Formula &formula) {
          return range.figures ? std::optional(formula) : std::nullopt;
        };
        writeFormula(json, "makespan", range.makespan);
        writeFormula(json, "work", known(figures.work));
        writeFormula(json, "bubble", figures.bubble);
        writeFormula(json, "activations", figures.activations);
        writeFormula(json, "memory", figures.memory);
        writeFormula(json, "messages", known(figures.messages));
        writeFormula(json, "bytes", figures.bytes);
        json.attributeArray("limit", [&] {
          for (const std::string &action : figures.limit)
            json.value(action);
        });
        json.attribute("reason", reasonText(range, sources));
      });
  out << '\n';
}

static void writeTable(const Proof &proof, StringRef free,
                       const SourceManager &sources, TableStyle style,
                       raw_ostream &out) {
  // What nobody told, or says nothing new, has no column.
  bool hasMemory = false, hasBytes = false;
  for (const ProvenRange &range : proof.ranges)
    if (const auto &figures = range.figures) {
      hasMemory |= figures->memory && figures->memory != figures->activations;
      hasBytes |= figures->bytes && figures->bytes->slope != Rational();
    }
  std::vector<std::string> head{free.str(), "makespan", "bubble",
                                "activations"};
  auto withOptional = [&](std::vector<std::string> cells, std::string memory,
                          std::string messages, std::string bytes,
                          std::string last) {
    if (hasMemory)
      cells.push_back(std::move(memory));
    cells.push_back(std::move(messages));
    if (hasBytes)
      cells.push_back(std::move(bytes));
    cells.push_back(std::move(last));
    return cells;
  };
  TextTable table(
      withOptional(head, "memory", "messages", "bytes", "limited by"));
  for (const ProvenRange &range : proof.ranges) {
    if (range.verdict == Verdict::Excluded)
      continue;
    const Figures none, &figures = range.figures ? *range.figures : none;
    table.add(
        withOptional({numbersText(range), formulaText(range.makespan, free),
                      formulaText(figures.bubble, free),
                      formulaText(figures.activations, free)},
                     formulaText(figures.memory, free),
                     range.figures ? formulaText(figures.messages, free) : "",
                     formulaText(figures.bytes, free),
                     range.verdict == Verdict::Right
                         ? llvm::join(figures.limit, ", ")
                         : verdictName(range.verdict).str() + ": " +
                               reasonText(range, sources)));
  }
  table.print(out, style);
}

int ppcc::runExplain(ArrayRef<const char *> args, Session::Files fs,
                     raw_ostream &out, raw_ostream &err) {
  OptionParser parser("ppcc explain",
                      "Tells what a schedule takes and holds, as formulas of "
                      "the number of microbatches");
  return runProof(
      parser, {"text", "json", "markdown"}, true, args, std::move(fs), out, err,
      [](const ProveOptions &options, const Proof &proof,
         const SourceManager &sources, raw_ostream &s) {
        if (options.format == "json")
          writeFormulas(proof, options.free, sources, s);
        else
          writeTable(proof, options.free, sources,
                     options.format == "markdown" ? TableStyle::Markdown
                                                  : TableStyle::Text,
                     s);
      });
}
