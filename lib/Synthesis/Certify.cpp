// Writes what shows that an order takes so long, and that none is below the
// bound, for ppcc::proof::checkOptimality().
#include "SynthesisContext.h"
#include "ppcc/Basic/Diagnostics/Synthesis.h"

#include "ppcc/Proof/Optimality.h"

#include "llvm/Support/JSON.h"

using namespace ppcc;
using namespace ppcc::synthesis;
namespace json = llvm::json;

using enum Workload::Part;

namespace {

class CertificateWriter {
public:
  CertificateWriter(const Problem &problem, const ResourceBound &bound)
      : problem(problem), bound(bound), numberOf(problem.numOps()) {
    for (Op op = 0; op != problem.numOps(); ++op) {
      unit = std::gcd(unit, problem.time[op]);
      amountUnit = std::gcd(amountUnit,
                            std::gcd(problem.allocates[op], problem.frees[op]));
      for (Problem::Edge edge : problem.sources(op))
        unit = std::gcd(unit, edge.latency);
    }
    unit = std::max<Time>(unit, 1);
    amountUnit = std::max<Amount>(amountUnit, 1);
  }

  /// Empty, with a reason, where no argument convinces the checker.
  std::string write(const Order &order, std::string &whyNot) {
    std::string text, start = "{\n\"format\": \"ppcc.optimality\"";
    llvm::raw_string_ostream out(start);
    auto add = [&](StringRef key, const json::Value &value) {
      out << ",\n\"" << key << "\": " << value;
    };
    json::Array limits, ranks;
    for (const std::optional<Amount> &limit : problem.load.memoryBudget)
      limits.push_back(limit ? json::Value(*limit / amountUnit) : nullptr);
    add("version", 1);
    add("time_unit", cost::format(unit));
    add("memory_unit", amount::format(amountUnit));
    add("limits", std::move(limits));
    add("actions", actions());
    Runner runner(problem);
    add("makespan", *runner.run(order) / unit);
    for (auto [rank, sequence] : llvm::enumerate(order)) {
      json::Array row;
      for (auto [op, m] : llvm::zip(sequence, runner.microbatches(rank)))
        for (int64_t number :
             {int64_t(numberOf[op]), runner.startOf(op, m) / unit})
          row.push_back(number);
      ranks.push_back(std::move(row));
    }
    add("order", std::move(ranks));
    add("bound", (bound.time + unit - 1) / unit);
    for (const json::Value &proof : proofs()) {
      text = start;
      llvm::raw_string_ostream(text) << ",\n\"proof\": " << proof << "\n}\n";
      auto shown = proof::checkOptimality(text);
      if (shown)
        return text;
      whyNot = toString(shown.takeError());
    }
    return {};
  }

private:
  json::Array actions() {
    json::Array actions;
    uint32_t stages = problem.load.stages.size();
    auto add = [&](Op op, StringRef part) {
      if (problem.count[op] == 0)
        return;
      numberOf[op] = actions.size();
      json::Array waits;
      for (Problem::Edge edge : problem.sources(op))
        waits.push_back(json::Array{numberOf[edge.op], edge.latency / unit});
      const Workload::Stage &stage = problem.load.stages[stageOf(op)];
      actions.push_back(
          json::Object{{"name", fmt::format("{}{}", stage.stage.value, part)},
                       {"rank", problem.rank[op]},
                       {"count", problem.count[op]},
                       {"time", problem.time[op] / unit},
                       {"takes", problem.allocates[op] / amountUnit},
                       {"frees", problem.frees[op] / amountUnit},
                       {"waits", std::move(waits)}});
    };
    for (uint32_t s = 0; s != stages; ++s)
      add(opOf(s, F), "F");
    for (uint32_t s = stages; s-- != 0;) {
      add(opOf(s, I), problem.load.hasPart(W) ? "I" : "B");
      add(opOf(s, W), "W");
    }
    return actions;
  }

  /// The arguments to try.
  std::vector<json::Value> proofs() const {
    std::vector<json::Value> proofs;
    json::Array leaf, all, cases;
    leaf.push_back(json::Array());
    for (uint32_t rank = 0; rank != problem.numRanks(); ++rank)
      all.push_back(rank);
    for (const ResourceBound::Case &one : bound.cases)
      cases.push_back(one.time < 0
                          ? json::Array()
                          : json::Array{numberOf[one.action], one.microbatch,
                                        one.time / unit, int(one.isLateFirst)});
    auto add = [&](json::Array ranks, const json::Array &cases) {
      proofs.push_back(json::Object{{"ranks", std::move(ranks)},
                                    {"cases", json::Array(cases)}});
    };
    if (bound.kind == ResourceBound::Kind::Work)
      proofs.push_back(load());
    add({}, leaf);
    add(json::Array{bound.rank.value}, leaf);
    add(std::move(all), cases.empty() ? leaf : cases);
    return proofs;
  }

  json::Value load() const {
    using End = ResourceBound::End;
    json::Array begin, end, gradients, forwards, chains;
    for (uint32_t s : problem.load.ofRank[bound.rank.value]) {
      if (problem.count[opOf(s, F)] == 0)
        continue;
      forwards.push_back(numberOf[opOf(s, F)]);
      gradients.push_back(numberOf[opOf(s, I)]);
      json::Array chain;
      if (bound.end == End::LastForward)
        chain.push_back(numberOf[opOf(s, I)]);
      if (bound.end != End::Work && problem.load.hasPart(W))
        chain.push_back(numberOf[opOf(s, W)]);
      chains.push_back(std::move(chain));
    }
    if (bound.begin == ResourceBound::Begin::FirstBackward)
      begin = gradients;
    if (bound.end != End::Work)
      end = bound.end == End::LastForward ? forwards : gradients;
    return json::Object{{"rank", bound.rank.value},
                        {"begin", std::move(begin)},
                        {"end", std::move(end)},
                        {"chains", std::move(chains)}};
  }

  const Problem &problem;
  const ResourceBound &bound;
  std::vector<uint32_t> numberOf; ///< In the certificate; by op.
  Time unit = 0;
  Amount amountUnit = 0;
};

} // namespace

std::string SynthesisContext::certify(const Problem &problem,
                                      const Order &order,
                                      const ResourceBound &bound) {
  std::string whyNot,
      text = CertificateWriter(problem, bound).write(order, whyNot);
  if (text.empty())
    session.diags.report<diag::NoCertificate>(
        Location(program.name()), bound.why(program.units()), whyNot);
  return text;
}
