// Reads certificates.
#include "ppcc/Proof/Certificate.h"
#include "ppcc/Proof/TemplateJson.h"

#include <bit>

using namespace ppcc;
using namespace ppcc::proof;
namespace json = llvm::json;

namespace {

/// Why a file is no certificate.
struct Refusal {
  std::string why;
};
[[noreturn]] void refuse(std::string why) { throw Refusal{std::move(why)}; }

/// No number of M is larger, and no model has more of anything.
constexpr int64_t mostNumber = int64_t(1) << 40, mostStep = INT32_MAX,
                  mostThings = 0xFFFE;

// ---- What is there, and is what it should be ----

template <class Found> Found need(Found found, StringRef key) {
  if (!found)
    refuse(fmt::format("`{}` is missing, or something else", key));
  return found;
}
std::string string(const json::Object &from, StringRef key) {
  return need(from.getString(key), key)->str();
}
int64_t integer(const json::Object &from, StringRef key, int64_t least,
                int64_t most) {
  int64_t value = *need(from.getInteger(key), key);
  if (value < least || value > most)
    refuse(fmt::format("`{}` is out of range", key));
  return value;
}
const json::Array &array(const json::Object &from, StringRef key,
                         size_t most = mostThings) {
  const json::Array &items = *need(from.getArray(key), key);
  if (items.size() > most)
    refuse(fmt::format("`{}` has too many items", key));
  return items;
}
const json::Object &object(const json::Object &from, StringRef key) {
  return *need(from.getObject(key), key);
}
bool isNull(const json::Object &from, StringRef key) {
  return need(from.get(key), key)->kind() == json::Value::Null;
}
void hasOnly(const json::Object &from, ArrayRef<StringRef> keys) {
  for (const auto &[key, value] : from)
    if (!llvm::is_contained(keys, StringRef(key)))
      refuse(fmt::format("`{}` is no key", StringRef(key)));
}

Rational rational(const json::Value &from, StringRef key) {
  auto [numerator, denominator] = need(from.getAsString(), key)->split('/');
  int64_t a = 0, b = 1;
  if (numerator.getAsInteger(10, a) ||
      (!denominator.empty() && denominator.getAsInteger(10, b)) || b <= 0)
    refuse(fmt::format("`{}` is no quotient", key));
  return Rational(a, b);
}
Formula formula(const json::Object &from) {
  auto part = [&](StringRef key) {
    return rational(*need(from.get(key), key), key);
  };
  return {part("slope"), part("intercept"), true};
}

/// A number of units.
int64_t amount(const json::Value &from, StringRef key, int64_t unit) {
  Rational value = rational(from, key) * Rational(unit);
  if (value.denominator != 1 ||
      wide::magnitude(value.numerator) > INT64_MAX / 8)
    refuse(fmt::format("`{}` is no number of its unit", key));
  return static_cast<int64_t>(value.numerator);
}
/// The same, not below 0.
int64_t time(const json::Value &from, StringRef key) {
  int64_t value = amount(from, key, timeUnit);
  if (value < 0)
    refuse(fmt::format("`{}` is below 0", key));
  return value;
}

/// One, or a list of `count`, in which null, where there `mayRest`, is
/// Costs::rest.
Costs::Values values(const json::Value &from, StringRef key, int64_t unit,
                     size_t count, bool mayRest = false) {
  const json::Array *list = from.getAsArray();
  if (!list)
    return {amount(from, key, unit)};
  if (list->size() != count)
    refuse(fmt::format("`{}` has another number of items", key));
  Costs::Values result;
  for (const json::Value &value : *list)
    result.push_back(mayRest && value.getAsNull() ? Costs::rest
                                                  : amount(value, key, unit));
  return result;
}

// ---- Models ----

class ModelReader {
public:
  std::shared_ptr<const Model> read(const json::Object &from) {
    hasOnly(from,
            {"ranks", "forward_only", "pipes", "declared", "times", "group",
             "groups", "links", "memory", "at_rest", "limits", "scales"});
    model->numRanks = integer(from, "ranks", 1, mostThings);
    model->hasBackward = !from.get("forward_only");
    if (!model->hasBackward && from.getBoolean("forward_only") != true)
      refuse("`forward_only` is true, or not there");
    for (const json::Value &pipe : array(from, "pipes", 256))
      readPipe(*need(pipe.getAsObject(), "pipes"));
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
        readKnownGroup(*need(group.getAsObject(), "groups"));
    if (from.get("links"))
      for (const json::Value &link : array(from, "links"))
        readLink(*need(link.getAsObject(), "links"));
    auto byRank = [&](StringRef key, Costs::Values &to) {
      if (const json::Value *found = from.get(key))
        to = values(*found, key, memoryUnit, model->numRanks);
    };
    byRank("at_rest", model->costs.atRest);
    byRank("limits", model->costs.limits);
    if (from.get("scales"))
      readScales(object(from, "scales"));
    return model;
  }

private:
  KindId kind(StringRef name) const {
    return *need(model->kinds.find(name), name);
  }

  void readPipe(const json::Object &from) {
    hasOnly(from, {"stages", "edges", "gaps", "slices"});
    Pipe &pipe = model->pipes.emplace_back();
    for (const json::Value &rank : array(from, "stages")) {
      int64_t value = *need(rank.getAsInteger(), "stages");
      if (value < 0 || value >= model->numRanks)
        refuse("a stage is on a rank that is not there");
      pipe.rankOfStage.push_back(RankId(value));
    }
    stages += pipe.numStages();
    auto stage = [&](const json::Value &from) {
      int64_t value = *need(from.getAsInteger(), "edges");
      if (value < 0 || value >= pipe.numStages())
        refuse("an edge has a stage that is not there");
      return StageId(value);
    };
    if (from.get("edges"))
      for (const json::Value &item : array(from, "edges")) {
        const json::Array &ends = *need(item.getAsArray(), "edges");
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
      pipe.slices = integer(from, "slices", 1, mostStep);
  }

  void readKinds(const json::Array &from) {
    for (const json::Value &item : from) {
      const json::Object &declared = *need(item.getAsObject(), "declared");
      KindInfo info;
      info.kindClass = KindClass::Declared;
      info.letters = string(declared, "name");
      if (info.letters.size() > 100 ||
          !llvm::all_of(info.letters,
                        [](char c) { return llvm::isAlnum(c) || c == '_'; }) ||
          model->kinds.find(info.letters))
        refuse("a declared kind has no name, or that of another");
      model->kinds.declare(std::move(info));
    }
    size_t next = model->kinds.size() - from.size();
    for (const json::Value &item : from)
      readKind(*item.getAsObject(), model->kinds.declared(KindId(next++)));
  }

  void readKind(const json::Object &from, KindInfo &info) {
    hasOnly(from, {"name", "per", "lane", "required", "in_flight", "restores",
                   "meets", "stages", "rules"});
    info.scope = *need(
        findEnum<KindScope>(kindScopeNames(), string(from, "per")), "per");
    info.lane = integer(from, "lane", 0, 255);
    info.isRequired = from.getBoolean("required").value_or(false);
    if (from.get("in_flight"))
      info.inFlight = integer(from, "in_flight", 1, mostStep);
    if (from.get("restores"))
      info.restores = kind(string(from, "restores"));
    if (from.get("meets")) {
      std::string name = string(from, "meets");
      for (Meeting one : {Meeting::All, Meeting::Replicas, Meeting::Stages,
                          Meeting::Outside, Meeting::To, Meeting::From})
        if (name == meetingName(one))
          info.meeting = one;
      if (info.meeting == Meeting::None || !info.canMeet())
        refuse("`meets` says nothing");
    }
    if (from.get("stages"))
      for (const json::Value &stage : array(from, "stages")) {
        int64_t value = *need(stage.getAsInteger(), "stages");
        if (value < -mostThings || value > mostThings)
          refuse("`stages` is out of range");
        info.stages.push_back(static_cast<int32_t>(value));
      }
    if (from.get("rules"))
      for (const json::Value &item : array(from, "rules")) {
        const json::Object &rule = *need(item.getAsObject(), "rules");
        hasOnly(rule, {"before", "after"});
        bool isBefore = rule.get("before") != nullptr;
        KindRule &read = info.rules.emplace_back(KindRule{isBefore, {}});
        for (const json::Value &name :
             array(rule, isBefore ? "before" : "after"))
          read.kinds.push_back(kind(*need(name.getAsString(), "rules")));
        if (read.kinds.empty() || rule.size() != 1)
          refuse("a rule names what it is about");
      }
  }

  void byKind(const json::Object &from, StringRef key, int64_t unit,
              std::map<uint32_t, Costs::Values> &to) {
    if (from.get(key))
      for (const auto &[name, value] : object(from, key))
        to[kind(name).value] =
            values(value, key, unit, stages, key == "memory");
    for (const auto &[kind, list] : to)
      if (llvm::is_contained(list, Costs::rest) &&
          !(model->kinds[KindId(kind)].defines & slot::WeightGrad))
        refuse("`null` is for those that make the gradients of weights");
  }

  void readGroup(const json::Object &from) {
    hasOnly(from, {"sum", "max", "whole"});
    if (from.size() != 1)
      refuse("`group` says one thing");
    model->costs.group = from.get("sum")   ? Costs::Group::Sum
                         : from.get("max") ? Costs::Group::Max
                                           : Costs::Group::Whole;
    model->costs.factor = time(from.begin()->second, "group");
  }

  void readKnownGroup(const json::Object &from) {
    hasOnly(from, {"members", "time"});
    auto members = readNumbers(from.get("members"), mostThings);
    std::vector<Costs::Member> key;
    if (!members || members->size() < 2)
      refuse("`members` are lists of kind, pipe and stage");
    for (const std::vector<int64_t> &one : *members) {
      if (one.size() != 3)
        refuse("`members` are lists of kind, pipe and stage");
      key.push_back({uint32_t(one[0]), uint32_t(one[1]), uint32_t(one[2])});
    }
    model->costs.groups[key] = time(*need(from.get("time"), "time"), "time");
  }

  void readLink(const json::Object &from) {
    hasOnly(from, {"pipe", "from", "to", "time"});
    auto number = [&](StringRef key) {
      return uint32_t(integer(from, key, 0, mostThings));
    };
    model->costs.links[{number("pipe"), number("from"), number("to")}] =
        time(*need(from.get("time"), "time"), "time");
  }

  void readScales(const json::Object &from) {
    hasOnly(from, {"times", "memory"});
    auto factors = [](const json::Value &value) {
      Costs::Values result;
      for (const json::Value &one : *need(value.getAsArray(), "scales"))
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
    // A reader of JSON goes down as far as it is nested.
    int64_t depth = 0;
    bool inString = false;
    for (size_t i = 0; i != text.size(); ++i) {
      char c = text[i];
      inString ^= c == '"';
      i += inString && c == '\\' && i + 1 != text.size();
      depth += !inString && (c == '[' || c == '{');
      depth -= !inString && (c == ']' || c == '}');
      if (depth > 64)
        refuse("it is nested more than 64 deep");
    }
    auto value = json::parse(text);
    if (!value)
      refuse(llvm::toString(value.takeError()));
    const json::Object &file = *need(value->getAsObject(), "format");
    if (string(file, "format") != "ppcc.certificate")
      refuse("it is no ppcc.certificate");
    if (int64_t version = integer(file, "version", INT64_MIN, INT64_MAX);
        version != 2)
      refuse(fmt::format("it is a certificate of version {}; this program "
                         "checks version 2, which `ppcc prove` writes now",
                         version));
    Certificate result;
    if (!isNull(file, "microbatches"))
      result.microbatches = formula(object(file, "microbatches"));
    for (const json::Value &model : array(file, "models")) {
      auto read = ModelReader().read(*need(model.getAsObject(), "models"));
      result.given.push_back({models.emplace_back(read), ""});
      llvm::raw_string_ostream(result.given.back().text) << model;
    }
    for (const json::Value &range : array(file, "ranges", SIZE_MAX))
      result.claims.push_back(claim(*need(range.getAsObject(), "ranges")));
    return result;
  }

private:
  Claim claim(const json::Object &from) {
    Claim claim;
    claim.modulus = integer(from, "modulus", 1, mostStep);
    claim.residue = integer(from, "residue", 0, claim.modulus - 1);
    claim.from = integer(from, "from", 1, mostStep);
    if (!isNull(from, "to"))
      claim.to = integer(from, "to", claim.from, mostNumber);
    claim.verdict = string(from, "verdict");
    if (!llvm::is_contained({"right", "wrong", "excluded", "undecided"},
                            claim.verdict))
      refuse("a verdict is none");
    for (const json::Value &transport : array(from, "transports"))
      claim.transports.push_back(
          need(transport.getAsString(), "transports")->str());
    if (!isNull(from, "makespan")) {
      const json::Object &span = object(from, "makespan");
      claim.makespan = formula(span);
      claim.makespan->isExact = *need(span.getBoolean("exact"), "exact");
      claim.timed = string(span, "on");
    }
    claim.fits = *need(from.getBoolean("fits"), "fits");
    if (!isNull(from, "evidence"))
      claim.evidence = evidence(object(from, "evidence"), claim);
    return claim;
  }

  std::shared_ptr<const Evidence> evidence(const json::Object &from,
                                           const Claim &claim) {
    auto result = std::make_shared<Evidence>();
    if (models.empty())
      refuse("there is no model");
    result->model = models[integer(from, "model", 0, models.size() - 1)];
    result->base = integer(from, "base", 1, claim.from);
    result->step = integer(from, "step", 1, mostStep);
    int64_t last =
        claim.to ? (*claim.to - result->base) / result->step : endless;
    auto readInto = [&](StringRef key, Template &program) {
      std::string fault = readTemplate(object(from, key), *result->model,
                                       std::nullopt, program);
      program.last = last;
      if (!fault.empty())
        refuse(fault);
    };
    readInto("data", result->byData);
    if (from.get("carried"))
      readInto("carried", result->carried);
    auto templateOn = [&](StringRef transport) -> const Template & {
      return transport == "data" ? result->byData : result->carried;
    };
    for (const json::Value &item : array(from, "orders")) {
      const json::Object &shown = *need(item.getAsObject(), "orders");
      std::string transport = string(shown, "transport");
      result->shown.push_back(
          {transport,
           {items<Times::OfRow>(shown, "order", templateOn(transport))}});
    }
    if (from.get("times"))
      result->times = {
          items<Times::OfRow>(from, "times", templateOn(claim.timed))};
    auto circle = readNumbers(from.get("circle"));
    if (!circle)
      refuse("`circle` is no list of events");
    for (const std::vector<int64_t> &event : *circle) {
      if (event.size() != 5 || event[2] < 0 || event[2] > 1 || event[0] < 0 ||
          event[0] >= int64_t(result->byData.ranks.size()) || event[1] < 0 ||
          event[1] >= int64_t(result->byData.ranks[event[0]].size()))
        refuse("an event is of a row that is not there");
      result->circle.push_back({uint32_t(event[0]), uint32_t(event[1]),
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
  } catch (const Refusal &refusal) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), refusal.why);
  } catch (const std::overflow_error &) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "a number is too large");
  }
}
