// Reads certificates.
#include "CertificateJson.h"
#include "ppcc/Proof/Certificate.h"
#include "ppcc/Proof/TemplateJson.h"

#include <bit>

using namespace ppcc;
using namespace ppcc::proof;

namespace {

/// No number of M is larger.
constexpr int64_t maxNumber = int64_t(1) << 40, maxStep = INT32_MAX;

Rational rational(const json::Value &from, StringRef key) {
  auto [numerator, denominator] = require(from.getAsString(), key)->split('/');
  int64_t a = 0, b = 1;
  if (numerator.getAsInteger(10, a) ||
      (!denominator.empty() && denominator.getAsInteger(10, b)) || b <= 0)
    refuse(fmt::format("`{}` is not a quotient", key));
  return Rational(a, b);
}
Formula formula(const json::Object &from, ArrayRef<StringRef> keys) {
  checkKeys(from, keys);
  auto part = [&](StringRef key) {
    return rational(*require(from.get(key), key), key);
  };
  return {part("slope"), part("intercept"), true};
}

/// A number of units.
int64_t amount(const json::Value &from, StringRef key, int64_t unit) {
  Rational value = rational(from, key) * Rational(unit);
  if (value.denominator != 1 ||
      wide::magnitude(value.numerator) > INT64_MAX / 8)
    refuse(fmt::format("`{}` is not a number of its unit", key));
  return static_cast<int64_t>(value.numerator);
}
/// The same, not below 0.
int64_t time(const json::Value &from, StringRef key) {
  int64_t value = amount(from, key, timeUnit);
  if (value < 0)
    refuse(fmt::format("`{}` is below 0", key));
  return value;
}

/// One, or a list of `count`, in which null, where there `allowsNull`, is
/// Costs::remainder.
Costs::Values values(const json::Value &from, StringRef key, int64_t unit,
                     size_t count, bool allowsNull = false) {
  const json::Array *list = from.getAsArray();
  if (!list)
    return {amount(from, key, unit)};
  if (list->size() != count)
    refuse(fmt::format("`{}` has another number of items", key));
  Costs::Values result;
  for (const json::Value &value : *list)
    result.push_back(allowsNull && value.getAsNull()
                         ? Costs::remainder
                         : amount(value, key, unit));
  return result;
}

// ---- Models ----

class ModelReader {
public:
  std::shared_ptr<const Model> read(const json::Object &from) {
    checkKeys(from, {"ranks", "forward_only", "pipes", "declared", "times",
                     "group", "groups", "links", "memory", "static_memory",
                     "limits", "scales"});
    model->numRanks = integer(from, "ranks", 1, maxItems);
    model->hasBackward = !from.get("forward_only");
    if (!model->hasBackward && from.getBoolean("forward_only") != true)
      refuse("`forward_only` is true, or not there");
    for (const json::Value &pipe : array(from, "pipes", 256))
      readPipe(*require(pipe.getAsObject(), "pipes"));
    if (from.get("declared"))
      readKinds(array(from, "declared", KindTable::maxKinds / 2));
    byKind(from, "times", timeUnit, model->costs.times);
    byKind(from, "memory", memoryUnit, model->costs.memory);
    for (const auto &[kind, values] : model->costs.times)
      if (llvm::any_of(values, [](int64_t time) { return time < 0; }))
        refuse("`times` has one below 0");
    if (from.get("group"))
      readGroup(object(from, "group"));
    if (from.get("groups"))
      for (const json::Value &group : array(from, "groups"))
        readGroupTime(*require(group.getAsObject(), "groups"));
    if (from.get("links"))
      for (const json::Value &link : array(from, "links"))
        readLink(*require(link.getAsObject(), "links"));
    auto byRank = [&](StringRef key, Costs::Values &to) {
      if (const json::Value *found = from.get(key))
        to = values(*found, key, memoryUnit, model->numRanks);
    };
    byRank("static_memory", model->costs.staticMemory);
    byRank("limits", model->costs.limits);
    if (from.get("scales"))
      readScales(object(from, "scales"));
    return model;
  }

private:
  KindId kind(StringRef name) const {
    return *require(model->kinds.find(name), name);
  }

  void readPipe(const json::Object &from) {
    checkKeys(from, {"stages", "edges", "gaps", "slices"});
    Pipe &pipe = model->pipes.emplace_back();
    for (const json::Value &rank : array(from, "stages")) {
      int64_t value = *require(rank.getAsInteger(), "stages");
      if (value < 0 || value >= model->numRanks)
        refuse("a stage is on a rank that is not there");
      pipe.rankOfStage.push_back(RankId(value));
    }
    stages += pipe.numStages();
    auto stage = [&](const json::Value &from) {
      int64_t value = *require(from.getAsInteger(), "edges");
      if (value < 0 || value >= pipe.numStages())
        refuse("an edge has a stage that is not there");
      return StageId(value);
    };
    if (from.get("edges"))
      for (const json::Value &item : array(from, "edges")) {
        const json::Array &ends = *require(item.getAsArray(), "edges");
        if (ends.size() != 2)
          refuse("an edge has two ends");
        pipe.skipEdges.push_back({stage(ends[0]), stage(ends[1])});
        if (pipe.skipEdges.back().first.value + 1 >=
            pipe.skipEdges.back().second.value)
          refuse("an edge leads to a later stage, past others");
      }
    if (from.get("gaps"))
      for (const json::Value &item : array(from, "gaps"))
        pipe.gaps.push_back(stage(item));
    auto ascends = [](const auto &list) {
      return std::adjacent_find(list.begin(), list.end(), [](auto &a, auto &b) {
               return !(a < b);
             }) == list.end();
    };
    if (!ascends(pipe.skipEdges) || !ascends(pipe.gaps))
      refuse("edges and gaps are to ascend");
    if (from.get("slices"))
      pipe.slices = integer(from, "slices", 1, maxStep);
  }

  void readKinds(const json::Array &from) {
    for (const json::Value &item : from) {
      const json::Object &declared = *require(item.getAsObject(), "declared");
      KindInfo info;
      info.kindClass = KindClass::Declared;
      info.mnemonic = string(declared, "name");
      if (info.mnemonic.size() > 100 ||
          !llvm::all_of(info.mnemonic,
                        [](char c) { return llvm::isAlnum(c) || c == '_'; }) ||
          model->kinds.find(info.mnemonic))
        refuse("a declared kind has no name, or that of another");
      model->kinds.declare(std::move(info));
    }
    size_t next = model->kinds.size() - from.size();
    for (const json::Value &item : from)
      readKind(*item.getAsObject(), model->kinds.declared(KindId(next++)));
  }

  void readKind(const json::Object &from, KindInfo &info) {
    checkKeys(from, {"name", "per", "lane", "required", "in_flight", "restores",
                     "collective", "stages", "rules"});
    info.scope = *require(
        findEnum<KindScope>(kindScopeNames(), string(from, "per")), "per");
    info.lane = integer(from, "lane", 0, 255);
    if (from.get("required"))
      info.isRequired = *require(from.getBoolean("required"), "required");
    if (from.get("in_flight"))
      info.inFlight = integer(from, "in_flight", 1, maxStep);
    if (from.get("restores"))
      info.restores = kind(string(from, "restores"));
    if (from.get("collective")) {
      std::string name = string(from, "collective");
      for (Collective one :
           {Collective::All, Collective::Replicas, Collective::Stages,
            Collective::Outside, Collective::To, Collective::From})
        if (name == collectiveName(one))
          info.collective = one;
      if (info.collective == Collective::None || !info.isValidCollective())
        refuse("`meets` says nothing");
    }
    if (from.get("stages"))
      for (const json::Value &stage : array(from, "stages")) {
        int64_t value = *require(stage.getAsInteger(), "stages");
        if (value < -maxItems || value > maxItems)
          refuse("`stages` is out of range");
        info.stages.push_back(static_cast<int32_t>(value));
      }
    if (from.get("rules"))
      for (const json::Value &item : array(from, "rules")) {
        const json::Object &rule = *require(item.getAsObject(), "rules");
        checkKeys(rule, {"before", "after"});
        bool isBefore = rule.get("before") != nullptr;
        KindRule &read = info.rules.emplace_back(KindRule{isBefore, {}});
        for (const json::Value &name :
             array(rule, isBefore ? "before" : "after"))
          read.kinds.push_back(kind(*require(name.getAsString(), "rules")));
        if (read.kinds.empty() || rule.size() != 1)
          refuse("a rule names its action");
      }
  }

  void byKind(const json::Object &from, StringRef key, int64_t unit,
              std::map<uint32_t, Costs::Values> &to) {
    if (from.get(key))
      for (const auto &[name, value] : object(from, key))
        to[kind(name).value] =
            values(value, key, unit, stages, key == "memory");
    for (const auto &[kind, list] : to)
      if (llvm::is_contained(list, Costs::remainder) &&
          !(model->kinds[KindId(kind)].defines & slot::WeightGrad))
        refuse("`null` is for actions that compute weight gradients");
  }

  void readGroup(const json::Object &from) {
    checkKeys(from, {"sum", "max", "fixed"});
    if (from.size() != 1)
      refuse("`group` says one thing");
    model->costs.group = from.get("sum")   ? Costs::Group::Sum
                         : from.get("max") ? Costs::Group::Max
                                           : Costs::Group::Fixed;
    model->costs.factor = time(from.begin()->second, "group");
  }

  void readGroupTime(const json::Object &from) {
    checkKeys(from, {"members", "time"});
    auto members = readNumbers(from.get("members"), maxItems);
    std::vector<Costs::Member> key;
    if (!members || members->size() < 2)
      refuse("`members` are lists of kind, pipe and stage");
    for (const std::vector<int64_t> &one : *members) {
      if (one.size() != 3 || llvm::any_of(one, [](int64_t number) {
            return number < 0 || number > maxItems;
          }))
        refuse("`members` are lists of kind, pipe and stage");
      key.push_back({uint32_t(one[0]), uint32_t(one[1]), uint32_t(one[2])});
    }
    int64_t took = time(*require(from.get("time"), "time"), "time");
    if (!model->costs.groups.try_emplace(std::move(key), took).second)
      refuse("a group has two times");
  }

  void readLink(const json::Object &from) {
    checkKeys(from, {"pipe", "from", "to", "time"});
    auto number = [&](StringRef key) {
      return uint32_t(integer(from, key, 0, maxItems));
    };
    std::array<uint32_t, 3> key{number("pipe"), number("from"), number("to")};
    int64_t took = time(*require(from.get("time"), "time"), "time");
    if (!model->costs.links.try_emplace(key, took).second)
      refuse("a link has two times");
  }

  void readScales(const json::Object &from) {
    checkKeys(from, {"times", "memory"});
    auto factors = [](const json::Value &value) {
      Costs::Values result;
      for (const json::Value &one : *require(value.getAsArray(), "scales"))
        result.push_back(time(one, "scales"));
      return result;
    };
    if (from.get("times"))
      for (const auto &[name, value] : object(from, "times"))
        model->costs.timeScales[kind(name).value] = factors(value);
    if (const json::Value *memory = from.get("memory"))
      model->costs.memoryScales = factors(*memory);
  }

  std::shared_ptr<Model> model = std::make_shared<Model>();
  size_t stages = 0; ///< Of all pipes.
};

// ---- Claims ----

/// What a list has of an item: its numbers, one after another.
template <class Item>
using Numbers = std::array<int64_t, sizeof(Item) / sizeof(int64_t)>;

/// By rank, what a list has of the rows of a template.
template <class Item>
std::vector<std::vector<Item>> items(const json::Object &from, StringRef key,
                                     const Template &program) {
  constexpr size_t width = std::tuple_size_v<Numbers<Item>>;
  auto lists = readNumbers(from.get(key));
  if (!lists || lists->size() != program.ranks.size())
    refuse(fmt::format("`{}` is of other ranks", key));
  std::vector<std::vector<Item>> result;
  for (const auto &[list, rows] : llvm::zip(*lists, program.ranks)) {
    if (list.size() != width * rows.size())
      refuse(fmt::format("`{}` is of other rows", key));
    auto &ofRank = result.emplace_back();
    for (size_t i = 0; i != list.size(); i += width) {
      Numbers<Item> numbers;
      std::copy_n(&list[i], width, numbers.begin());
      ofRank.push_back(std::bit_cast<Item>(numbers));
    }
  }
  return result;
}

class Reader {
public:
  Certificate read(StringRef text) {
    json::Value value = parse(text, "ppcc.certificate");
    const json::Object &file = *value.getAsObject();
    if (int64_t version = integer(file, "version", INT64_MIN, INT64_MAX);
        version != 2)
      refuse(fmt::format("it is a certificate of version {}; this program "
                         "checks version 2, which `ppcc prove` writes now",
                         version));
    checkKeys(file, {"format", "version", "schedule", "params", "for",
                     "microbatches", "models", "ranges"});
    Certificate result;
    if (!isNull(file, "microbatches"))
      result.microbatches =
          formula(object(file, "microbatches"), {"slope", "intercept"});
    for (const json::Value &model : array(file, "models")) {
      auto read = ModelReader().read(*require(model.getAsObject(), "models"));
      result.assumptions.push_back({models.emplace_back(read), ""});
      llvm::raw_string_ostream(result.assumptions.back().text) << model;
    }
    for (const json::Value &range : array(file, "ranges", SIZE_MAX))
      result.claims.push_back(claim(*require(range.getAsObject(), "ranges")));
    return result;
  }

private:
  Claim claim(const json::Object &from) {
    checkKeys(from, {"modulus", "residue", "from", "to", "verdict",
                     "transports", "makespan", "fits", "reason", "evidence"});
    Claim claim;
    claim.modulus = integer(from, "modulus", 1, maxStep);
    claim.residue = integer(from, "residue", 0, claim.modulus - 1);
    claim.from = integer(from, "from", 1, maxStep);
    if (!isNull(from, "to"))
      claim.to = integer(from, "to", claim.from, maxNumber);
    claim.verdict = string(from, "verdict");
    if (!llvm::is_contained({"valid", "invalid", "excluded", "undecided"},
                            claim.verdict))
      refuse("unknown verdict `" + claim.verdict + "`");
    for (const json::Value &transport : array(from, "transports")) {
      StringRef name = *require(transport.getAsString(), "transports");
      if (llvm::is_contained(claim.transports, name))
        refuse("a transport is named twice");
      claim.transports.push_back(name.str());
    }
    if (!isNull(from, "makespan")) {
      const json::Object &span = object(from, "makespan");
      claim.makespan = formula(span, {"slope", "intercept", "exact", "on"});
      claim.makespan->isExact = *require(span.getBoolean("exact"), "exact");
      claim.makespanTransport = string(span, "on");
    }
    claim.fits = *require(from.getBoolean("fits"), "fits");
    if (!isNull(from, "evidence"))
      claim.evidence = evidence(object(from, "evidence"), claim);
    return claim;
  }

  std::shared_ptr<const Evidence> evidence(const json::Object &from,
                                           const Claim &claim) {
    checkKeys(from, {"model", "base", "step", "data", "with_messages", "orders",
                     "times", "cycle"});
    auto result = std::make_shared<Evidence>();
    if (models.empty())
      refuse("there is no model");
    result->model = models[integer(from, "model", 0, models.size() - 1)];
    result->base = integer(from, "base", 1, claim.from);
    result->step = integer(from, "step", 1, maxStep);
    int64_t last =
        claim.to ? (*claim.to - result->base) / result->step : unbounded;
    auto readInto = [&](StringRef key, Template &program) {
      const json::Object &lists = object(from, key);
      checkKeys(lists, {"microbatches", "actions"});
      auto microbatches = readNumbers(lists.get("microbatches"));
      std::vector<NumberLists> actions;
      for (const json::Value &rank : array(lists, "actions", SIZE_MAX))
        actions.push_back(require(readNumbers(&rank), "actions").value());
      std::string fault =
          makeTemplate(require(microbatches, "microbatches").value(),
                       std::move(actions), *result->model, {}, program);
      program.last = last;
      if (!fault.empty())
        refuse(fault);
    };
    readInto("data", result->withoutMessages);
    if (from.get("with_messages"))
      readInto("with_messages", result->withMessages);
    auto templateOn = [&](StringRef transport) -> const Template & {
      return transport == "data" ? result->withoutMessages
                                 : result->withMessages;
    };
    for (const json::Value &item : array(from, "orders")) {
      const json::Object &witness = *require(item.getAsObject(), "orders");
      checkKeys(witness, {"transport", "order"});
      std::string transport = string(witness, "transport");
      result->orderWitnesses.push_back(
          {transport,
           {items<Times::OfRow>(witness, "order", templateOn(transport))}});
    }
    if (from.get("times"))
      result->times = {items<Times::OfRow>(
          from, "times", templateOn(claim.makespanTransport))};
    auto cycle = readNumbers(from.get("cycle"));
    if (!cycle)
      refuse("`cycle` is not a list of events");
    for (const std::vector<int64_t> &event : *cycle) {
      if (event.size() != 5 || event[2] < 0 || event[2] > 1 || event[0] < 0 ||
          event[0] >= int64_t(result->withoutMessages.ranks.size()) ||
          event[1] < 0 ||
          event[1] >= int64_t(result->withoutMessages.ranks[event[0]].size()))
        refuse("an event is of a row that is not there");
      result->cycle.push_back({uint32_t(event[0]), uint32_t(event[1]),
                               event[2] != 0, Affine{event[3], event[4], 0}});
    }
    return result;
  }

  std::vector<std::shared_ptr<const Model>> models;
};

} // namespace

llvm::Expected<Certificate> ppcc::proof::readCertificate(StringRef text) {
  try {
    return Reader().read(text);
  } catch (const InvalidCertificate &refusal) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), refusal.why);
  } catch (const std::overflow_error &) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "a number is too large");
  }
}
