// Claims what the checker agrees with, and writes it.
#include "ppcc/Prove/Prove.h"

#include "ppcc/Proof/TemplateJson.h"

#include <bit>

namespace ppcc::certificate {
using namespace proof;
namespace json = llvm::json;

/// What is claimed of a range, as far as its evidence shows it.
static Claim claimOf(const ProvenRange &range, StringRef firstTransport,
                     std::string reason) {
  Claim claim;
  std::tie(claim.modulus, claim.residue, claim.from, claim.to) =
      std::tie(range.modulus, range.residue, range.from, range.to);
  claim.verdict = verdictName(range.verdict);
  claim.reason = std::move(reason);
  bool isValid = range.verdict == Verdict::Valid;
  if (!range.evidence || (!isValid && range.evidence->cycle.empty())) {
    if (isValid)
      claim.verdict = verdictName(Verdict::Undecided);
    return claim;
  }
  auto evidence = std::make_shared<Evidence>(*range.evidence);
  claim.evidence = evidence;
  auto isAccepted = [&](ArrayRef<OrderWitness> witnesses, bool fits,
                        bool isTimed) {
    evidence->orderWitnesses = witnesses;
    claim.transports.clear();
    for (const OrderWitness &one : witnesses)
      claim.transports.push_back(one.transport);
    claim.fits = fits;
    claim.makespan = isTimed ? range.makespan : std::nullopt;
    claim.makespanTransport = firstTransport;
    return faultOf(claim, Certificate()).empty();
  };
  bool isLimited = !evidence->model->costs.limits.empty(),
       isTimed = range.makespan && evidence->times;
  // All of it, or what remains of it.
  const std::vector<OrderWitness> &all = range.evidence->orderWitnesses;
  if (!isValid) {
    evidence->withMessages = {};
    evidence->times = std::nullopt;
    if (!isAccepted({}, false, false))
      claim.evidence = nullptr;
  } else if (!isAccepted(all, isLimited, isTimed)) {
    std::vector<OrderWitness> good;
    for (const OrderWitness &one : all)
      if (isAccepted(one, false, false))
        good.push_back(one);
    bool fits = isLimited && isAccepted(good, true, false);
    if (!isAccepted(good, fits, isTimed))
      isAccepted(good, fits, false);
    if (good.empty()) {
      claim.evidence = nullptr;
      claim.verdict = verdictName(Verdict::Undecided);
    }
  }
  if (!claim.makespan)
    evidence->times = std::nullopt;
  if (claim.transports == std::vector<std::string>{"data"})
    evidence->withMessages = {};
  return claim;
}

/// How many microbatches the programs of each M have, if that is one formula.
static std::optional<Formula> microbatchesOf(ArrayRef<Claim> claims) {
  std::vector<std::pair<Rational, Rational>> points; // Two of each range.
  for (const Claim &claim : claims) {
    if (!claim.evidence)
      continue;
    const Evidence &evidence = *claim.evidence;
    Affine count;
    for (const MicrobatchRange &range : evidence.withoutMessages.pipes)
      count = count + range.count;
    int64_t n = (claim.from - evidence.base) / evidence.step;
    points.push_back({claim.from, count.at(n)});
    if (claim.to != claim.from)
      points.push_back({claim.from + evidence.step, count.at(n + 1)});
  }
  if (points.empty())
    return std::nullopt;
  auto [m, count] = points.front();
  Rational slope(1);
  if (points.size() > 1)
    slope = (points[1].second - count) / (points[1].first - m);
  Formula formula{slope, count - slope * m, true};
  bool isOne = llvm::all_of(points, [&](const auto &point) {
    return formula.slope * point.first + formula.intercept == point.second;
  });
  return isOne ? std::optional(formula) : std::nullopt;
}

} // namespace ppcc::certificate

using namespace ppcc;

proof::Certificate ppcc::certificateOf(const Proof &proof, StringRef free,
                                       const SourceManager &sources) {
  proof::Certificate certificate;
  certificate.schedule = proof.schedule;
  certificate.free = free;
  for (const ProgramParam &param : proof.params)
    certificate.params.push_back({param.name, param.value});
  constexpr size_t maxRows = 2'000'000;
  size_t rows = 0;
  for (ProvenRange part : proof.unmerged) {
    if (part.evidence)
      for (const proof::Template *program :
           {&part.evidence->withoutMessages, &part.evidence->withMessages})
        for (const auto &ofRank : program->ranks)
          rows += ofRank.size();
    if (rows > maxRows && part.evidence) {
      part.evidence = nullptr;
      part.reason = fmt::format("the evidence has more than {} rows", maxRows);
    }
    std::string where = textOf(part.place, sources);
    certificate.claims.push_back(certificate::claimOf(
        part, proof.transports.front(),
        where.empty() ? part.reason : where + ": " + part.reason));
  }
  certificate.microbatches = certificate::microbatchesOf(certificate.claims);
  return certificate;
}

// ---- As JSON ----

namespace ppcc::certificate {

namespace {

/// What a list has of an item: its numbers, one after another.
template <class Item>
using Numbers = std::array<int64_t, sizeof(Item) / sizeof(int64_t)>;

void writeRaw(json::OStream &json, StringRef key,
              function_ref<void(raw_ostream &)> write) {
  json.attributeBegin(key);
  json.rawValue(write);
  json.attributeEnd();
}

/// A key with so many lists of numbers.
void writeLists(json::OStream &json, StringRef key, size_t count,
                function_ref<std::vector<int64_t>(size_t)> numbers) {
  writeRaw(json, key, [&](raw_ostream &out) {
    out << '[';
    for (size_t i = 0; i != count; ++i) {
      out << (i == 0 ? "[" : ",[");
      llvm::interleave(numbers(i), out, ",");
      out << ']';
    }
    out << ']';
  });
}

/// By rank, what `lists` have of its rows.
template <class Item>
void writeItems(json::OStream &out, StringRef name,
                const std::vector<std::vector<Item>> &lists) {
  writeLists(out, name, lists.size(), [&](size_t rank) {
    std::vector<int64_t> numbers;
    for (const Item &item : lists[rank])
      llvm::append_range(numbers, std::bit_cast<Numbers<Item>>(item));
    return numbers;
  });
}

json::Array listOf(const Costs::Values &values, int64_t unit) {
  json::Array list;
  for (int64_t value : values)
    list.push_back(value == Costs::remainder
                       ? json::Value(nullptr)
                       : json::Value(Rational(value, unit).text()));
  return list;
}
/// One where that is all.
json::Value valueOf(const Costs::Values &values, int64_t unit) {
  json::Array list = listOf(values, unit);
  return list.size() == 1 ? list.front() : json::Value(std::move(list));
}

json::Value pipeOf(const Pipe &pipe) {
  json::Array stages, edges, gaps;
  for (RankId rank : pipe.rankOfStage)
    stages.push_back(rank.value);
  for (auto [from, to] : pipe.skipEdges)
    edges.push_back(json::Array{from.value, to.value});
  for (StageId stage : pipe.gaps)
    gaps.push_back(stage.value);
  json::Object result{{"stages", std::move(stages)}};
  if (!edges.empty())
    result["edges"] = std::move(edges);
  if (!gaps.empty())
    result["gaps"] = std::move(gaps);
  if (pipe.slices != 1)
    result["slices"] = pipe.slices;
  return result;
}

json::Value kindOf(const KindInfo &info, const KindTable &kinds) {
  json::Object result{{"name", info.mnemonic},
                      {"per", kindScopeNames()[size_t(info.scope)]},
                      {"lane", info.lane}};
  if (info.isRequired)
    result["required"] = true;
  if (info.inFlight != 0)
    result["in_flight"] = info.inFlight;
  if (info.restores)
    result["restores"] = kinds[*info.restores].mnemonic;
  if (info.collective != Collective::None)
    result["collective"] = collectiveName(info.collective);
  if (!info.stages.empty())
    result["stages"] = json::Array(info.stages);
  json::Array rules;
  for (const KindRule &rule : info.rules) {
    json::Array names;
    for (KindId kind : rule.kinds)
      names.push_back(kinds[kind].mnemonic);
    rules.push_back(
        json::Object{{rule.isBefore ? "before" : "after", std::move(names)}});
  }
  if (!rules.empty())
    result["rules"] = std::move(rules);
  return result;
}

json::Value modelOf(const Model &model) {
  const Costs &costs = model.costs;
  json::Object result{{"ranks", model.numRanks}};
  if (!model.hasBackward)
    result["forward_only"] = true;
  json::Array pipes, declared, groups, links;
  for (const Pipe &pipe : model.pipes)
    pipes.push_back(pipeOf(pipe));
  result["pipes"] = std::move(pipes);
  for (const KindInfo &info : model.kinds.declaredRows())
    declared.push_back(kindOf(info, model.kinds));
  if (!declared.empty())
    result["declared"] = std::move(declared);
  auto byKind = [&](const std::map<uint32_t, Costs::Values> &values,
                    int64_t unit) {
    json::Object object;
    for (const auto &[kind, value] : values)
      object[model.kinds[KindId(kind)].mnemonic] = valueOf(value, unit);
    return object;
  };
  if (!costs.times.empty())
    result["times"] = byKind(costs.times, timeUnit);
  if (costs.group != Costs::Group::Sum || costs.factor != timeUnit)
    result["group"] =
        json::Object{{costs.group == Costs::Group::Sum   ? "sum"
                      : costs.group == Costs::Group::Max ? "max"
                                                         : "fixed",
                      valueOf({costs.factor}, timeUnit)}};
  for (const auto &[members, time] : costs.groups) {
    json::Array list;
    for (const Costs::Member &member : members)
      list.push_back(json::Array(member));
    groups.push_back(json::Object{{"members", std::move(list)},
                                  {"time", valueOf({time}, timeUnit)}});
  }
  if (!groups.empty())
    result["groups"] = std::move(groups);
  for (const auto &[edge, time] : costs.links)
    links.push_back(json::Object{{"pipe", edge[0]},
                                 {"from", edge[1]},
                                 {"to", edge[2]},
                                 {"time", valueOf({time}, timeUnit)}});
  if (!links.empty())
    result["links"] = std::move(links);
  // What is held counts where it is limited.
  if (!costs.limits.empty()) {
    result["memory"] = byKind(costs.memory, memoryUnit);
    result["static_memory"] = valueOf(costs.staticMemory, memoryUnit);
    result["limits"] = valueOf(costs.limits, memoryUnit);
  }
  json::Object scales;
  json::Object times;
  for (const auto &[kind, factors] : costs.timeScales)
    times[model.kinds[KindId(kind)].mnemonic] = listOf(factors, timeUnit);
  if (!times.empty())
    scales["times"] = std::move(times);
  if (!costs.memoryScales.empty() && !costs.limits.empty())
    scales["memory"] = listOf(costs.memoryScales, timeUnit);
  if (!scales.empty())
    result["scales"] = std::move(scales);
  return result;
}

class Writer {
public:
  explicit Writer(raw_ostream &out) : out(out, 1) {}

  void write(const Certificate &certificate) {
    out.objectBegin();
    out.attribute("format", "ppcc.certificate");
    out.attribute("version", 2);
    out.attribute("schedule", certificate.schedule);
    out.attributeObject("params", [&] {
      for (const auto &[name, value] : certificate.params)
        out.attribute(name, value);
    });
    out.attribute("for", certificate.free);
    writeFormula("microbatches", certificate.microbatches);
    json::Array models;
    for (const Claim &claim : certificate.claims)
      if (claim.evidence) {
        json::Value model = modelOf(*claim.evidence->model);
        size_t number = llvm::find(models, model) - models.begin();
        if (number == models.size())
          models.push_back(std::move(model));
        numbers[claim.evidence->model.get()] = number;
      }
    out.attribute("models", std::move(models));
    out.attributeArray("ranges", [&] {
      for (const Claim &claim : certificate.claims)
        out.object([&] { write(claim); });
    });
    out.objectEnd();
  }

private:
  void writeFormula(StringRef key, const std::optional<Formula> &formula,
                    StringRef on = "") {
    if (!formula)
      return out.attribute(key, nullptr);
    out.attributeObject(key, [&] {
      out.attribute("slope", formula->slope.text());
      out.attribute("intercept", formula->intercept.text());
      if (on.empty())
        return;
      out.attribute("exact", formula->isExact);
      out.attribute("on", on);
    });
  }

  void write(const Claim &claim) {
    out.attribute("modulus", claim.modulus);
    out.attribute("residue", claim.residue);
    out.attribute("from", claim.from);
    out.attribute("to",
                  claim.to ? json::Value(*claim.to) : json::Value(nullptr));
    out.attribute("verdict", claim.verdict);
    out.attribute("transports", json::Array(claim.transports));
    writeFormula("makespan", claim.makespan, claim.makespanTransport);
    out.attribute("fits", claim.fits);
    out.attribute("reason", claim.reason);
    if (claim.evidence)
      out.attributeObject("evidence", [&] { write(*claim.evidence); });
    else
      out.attribute("evidence", nullptr);
  }

  void write(const Evidence &evidence) {
    out.attribute("model", numbers[evidence.model.get()]);
    out.attribute("base", evidence.base);
    out.attribute("step", evidence.step);
    auto writeTemplate = [&](StringRef name, const Template &program) {
      out.attributeObject(name, [&] {
        writeLists(out, "microbatches", program.pipes.size(), [&](size_t i) {
          const auto &[first, count] = program.pipes[i];
          return std::vector<int64_t>{first.c, first.n, count.c, count.n};
        });
        writeRaw(out, "actions", [&](raw_ostream &rows) {
          writeRows(rows, program, /*hasSites=*/false);
        });
      });
    };
    writeTemplate("data", evidence.withoutMessages);
    if (!evidence.withMessages.ranks.empty())
      writeTemplate("with_messages", evidence.withMessages);
    out.attributeArray("orders", [&] {
      for (const OrderWitness &witness : evidence.orderWitnesses)
        out.object([&] {
          out.attribute("transport", witness.transport);
          writeItems(out, "order", witness.order.ranks);
        });
    });
    if (evidence.times)
      writeItems(out, "times", evidence.times->ranks);
    writeLists(out, "cycle", evidence.cycle.size(), [&](size_t i) {
      const Event &event = evidence.cycle[i];
      return std::vector<int64_t>{event.rank, event.row, event.isEnd,
                                  event.iteration.c, event.iteration.n};
    });
  }

  json::OStream out;
  std::map<const Model *, int64_t> numbers;
};

} // namespace
} // namespace ppcc::certificate

void ppcc::writeCertificate(const proof::Certificate &certificate,
                            raw_ostream &out) {
  certificate::Writer(out).write(certificate);
  out << '\n';
}
