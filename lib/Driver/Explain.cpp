// `ppcc explain`: what a schedule takes, as formulas of the number of
// microbatches.
#include "ProofText.h"
#include "ppcc/Support/TextTable.h"

#include "llvm/ADT/SetVector.h"

using namespace ppcc;

static void putMetrics(const ProvenRange &range, JsonFields &fields) {
  const Metrics none, &metrics = range.metrics ? *range.metrics : none;
  auto known = [&](const Formula &formula) {
    return range.metrics ? std::optional(formula) : std::nullopt;
  };
  putFormula(fields, "work", metrics.work);
  putFormula(fields, "idle", metrics.bubble);
  putFormula(fields, "activations", metrics.activations);
  putFormula(fields, "memory", metrics.memory);
  putFormula(fields, "messages", known(metrics.messages));
  putFormula(fields, "bytes", metrics.bytes);
  fields.values("bottleneck", metrics.bottleneck);
}

/// `rank 3: 3F 3B` of `rank 3 3F` and `rank 3 3B`; of many, the ranks.
static std::string bottleneckText(ArrayRef<std::string> actions) {
  std::map<unsigned, llvm::SetVector<StringRef>> cellsOf; // By rank.
  size_t total = 0;
  for (StringRef action : actions) {
    auto [rank, cell] = action.rsplit(' ');
    total += cellsOf[std::stoi(rank.rsplit(' ').second.str())].insert(cell);
  }
  auto ranks = llvm::make_first_range(cellsOf);
  constexpr size_t maxShown = 8;
  if (total > maxShown)
    return fmt::format("{} {}{}", cellsOf.size() == 1 ? "rank" : "ranks",
                       fmt::join(ranks, ", "),
                       cellsOf.size() == 1 ? "" : " in turn");
  std::vector<std::string> texts;
  for (const auto &[rank, cells] : cellsOf)
    texts.push_back(fmt::format("rank {}: {}", rank, fmt::join(cells, " ")));
  return llvm::join(texts, ", ");
}

static void writeTable(const ProveOptions &options, const Proof &proof,
                       const SourceManager &sources, raw_ostream &out) {
  StringRef free = options.free;
  // Figures that are not known, or say nothing new, have no column.
  bool hasMemory = false, hasBytes = false;
  for (const ProvenRange &range : proof.ranges)
    if (const auto &metrics = range.metrics) {
      hasMemory |= metrics->memory && metrics->memory != metrics->activations;
      hasBytes |= metrics->bytes && metrics->bytes->slope != Rational();
    }
  auto shown = [&](std::vector<std::string> cells) {
    if (!hasBytes)
      cells.erase(cells.begin() + 6);
    if (!hasMemory)
      cells.erase(cells.begin() + 4);
    return cells;
  };
  TextTable table(shown({free.str(), "makespan", "idle time", "activations",
                         "memory", "messages", "bytes", "limited by"}));
  auto text = [&](const std::optional<Formula> &formula, Quantity quantity) {
    return formulaText(formula, free, quantity, proof.units);
  };
  for (const auto &[numbers, range] : linesOf(proof.ranges, free)) {
    if (range.verdict == Verdict::Excluded)
      continue;
    const Metrics none, &metrics = range.metrics ? *range.metrics : none;
    table.add(shown({numbers, text(range.makespan, Quantity::Time),
                     text(metrics.bubble, Quantity::Time),
                     text(metrics.activations, Quantity::Count),
                     text(metrics.memory, Quantity::Memory),
                     range.metrics ? metrics.messages.text(free) : "",
                     text(metrics.bytes, Quantity::Memory),
                     range.verdict == Verdict::Valid
                         ? bottleneckText(metrics.bottleneck)
                         : verdictName(range.verdict).str() + ": " +
                               reasonText(range, sources)}));
  }
  table.print(out, options.format == "markdown" ? TableStyle::Markdown
                                                : TableStyle::Text);
}

int ppcc::runExplain(const Invocation &call) {
  OptionParser parser(call, "ppcc explain");
  return runProof(parser, {"text", "json", "markdown"}, true, call,
                  "ppcc.explanation", putMetrics, writeTable);
}
