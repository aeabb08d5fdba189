// Converts costs between numbers, text and exact whole numbers.
#include "ppcc/IR/Costs.h"

#include "ppcc/IR/ActionKind.h"

using namespace ppcc;

std::optional<int64_t> ppcc::fromDouble(double value, decimal::Scale scale) {
  int64_t unit = 1;
  for (unsigned place = 0; place != scale.places; ++place)
    unit *= 10;
  long double scaled = static_cast<long double>(value) * unit;
  return std::abs(scaled) <= scale.max
             ? std::optional<int64_t>(std::llround(scaled))
             : std::nullopt;
}

std::optional<Time> cost::parse(StringRef text) {
  return decimal::parse(text, scale);
}

std::string cost::format(Time time) {
  return decimal::format(time, scale.places);
}

std::string amount::format(decimal::Sum amount) {
  return decimal::format(amount, scale.places);
}

namespace {

struct UnitStep {
  StringRef name;
  double size;
};
constexpr UnitStep timeSteps[] = {
    {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
constexpr UnitStep memorySteps[] = {{"TiB", 1ull << 40},
                                    {"GiB", 1ull << 30},
                                    {"MiB", 1ull << 20},
                                    {"KiB", 1ull << 10},
                                    {"B", 1}};

/// Of the largest step that it is, or rounds to, one of.
std::string inSteps(double value, ArrayRef<UnitStep> steps) {
  if (value == 0)
    return "0";
  auto isEnough = [&](const UnitStep &step) {
    return std::abs(value) >= 0.9995 * step.size;
  };
  const UnitStep *step = llvm::find_if(steps, isEnough);
  step -= step == steps.end();
  value /= step->size;
  double size = std::abs(value);
  return fmt::format("{:.{}f} {}", value,
                     size >= 99.95   ? 0
                     : size >= 9.995 ? 1
                                     : 2,
                     step->name);
}

/// Six digits, and all of a whole number.
std::string rounded(decimal::Sum value, unsigned places) {
  std::string exact = decimal::format(value, places);
  if (StringRef(exact).trim("-0.").size() <= 7 ||
      !StringRef(exact).contains('.'))
    return exact;
  double number = static_cast<double>(value) / std::pow(10, places);
  return std::abs(number) < 1e6 ? fmt::format("{:.6g}", number)
                                : fmt::format("{:.0f}", number);
}

} // namespace

ArrayRef<StringRef> Units::allWords() {
  static constexpr StringRef all[] = {"s", "ms", "us", "bytes"};
  return all;
}

bool Units::take(StringRef word) {
  if (word == "bytes")
    return !std::exchange(inBytes, true);
  bool isFirst = ofTime.empty();
  ofTime = *llvm::find(allWords(), word);
  return isFirst;
}

SmallVector<StringRef, 2> Units::words() const {
  SmallVector<StringRef, 2> words;
  if (!ofTime.empty())
    words.push_back(ofTime);
  if (inBytes)
    words.push_back("bytes");
  return words;
}

std::string Units::time(decimal::Sum value) const {
  auto *step = findBy(timeSteps, ofTime, &UnitStep::name);
  return step ? inSteps(static_cast<double>(value) / cost::unit * step->size,
                        timeSteps)
              : rounded(value, cost::scale.places);
}

std::string Units::memory(decimal::Sum value) const {
  return inBytes
             ? inSteps(static_cast<double>(value) / amount::unit, memorySteps)
             : rounded(value, amount::scale.places);
}

// ---- The table ----

namespace {

constexpr CostNumber Time{cost::scale, "a number from 0 to 10^9"},
    Amount{amount::scale, "a number from 0 to 10^12"},
    Rate{amount::scale, "a number above 0, to 10^12", false, true},
    Change{amount::scale, "a number from -10^12 to 10^12", true},
    Factor{scaling::decimals, "a number from 0 to 10^6"},
    Share{{9, scaling::unit}, "a number from 0 to 1"};

constexpr CostRow rows[] = {
#define COST(Name, Item, Subject, Number, Spread, Owner)                       \
  {Cost::Name,      Item, Subject, Number, CostGranularity::Spread,            \
   CostOwner::Owner},
#include "ppcc/IR/Costs.def"
};

} // namespace

ArrayRef<CostRow> ppcc::costRows() { return rows; }

ArrayRef<StringRef> ppcc::costItems() {
  static const std::vector<StringRef> items = [] {
    std::vector<StringRef> items;
    for (const CostRow &row : rows)
      items.push_back(row.item);
    items.erase(std::unique(items.begin(), items.end()), items.end());
    return items;
  }();
  return items;
}

bool ppcc::isCostWord(StringRef word) {
  return llvm::any_of(rows, [&](const CostRow &row) {
    return row.item == word || row.subject == word;
  });
}

std::optional<CostSetting> ppcc::findCost(StringRef item, StringRef subject,
                                          const KindTable &kinds) {
  if (item == "memory" && (subject == "static" || subject == "limit"))
    return findCost(subject, "", kinds); // As it was called before.
  auto [mnemonic, node] = subject.split('.');
  bool hasNode = subject.contains('.');
  auto kind = kinds.find(mnemonic);
  bool isKind = kind && kinds[*kind].isCompute();
  if (!kind && kinds.isPruned(mnemonic))
    kind = KindTable::prunedKind, isKind = true;
  for (const CostRow &row : rows) {
    if (row.item != item)
      continue;
    if (row.subject == subject)
      return CostSetting{row.what};
    if (isKind && (hasNode ? row.isOfNode() : row.isOfKind()))
      return CostSetting{row.what, *kind, node.str()};
  }
  return std::nullopt;
}

std::vector<StringRef> ppcc::costSubjects(StringRef item,
                                          const KindTable &kinds) {
  std::vector<StringRef> subjects;
  for (const CostRow &row : rows) {
    if (row.item != item || row.subject.empty())
      continue;
    if (!row.isOfKind() && !row.isOfNode())
      subjects.push_back(row.subject);
    for (const KindInfo &info : kinds.rows())
      if (row.isOfKind() && info.isCompute())
        subjects.push_back(info.mnemonic);
  }
  return subjects;
}

std::string ppcc::subjectOf(const CostSetting &setting,
                            const KindTable &kinds) {
  if (!setting.isPerKind())
    return rowOf(setting.what).subject.str();
  return kinds[setting.kind].mnemonic +
         (setting.node.empty() ? "" : "." + setting.node);
}

const CostSetting *CostModel::last(std::initializer_list<Cost> of) const {
  for (const CostSetting &setting : llvm::reverse(settings))
    if (llvm::is_contained(of, setting.what))
      return &setting;
  return nullptr;
}

bool CostModel::hasMemoryCosts(const KindTable &kinds) const {
  return llvm::any_of(of(Cost::Memory), [&](const CostSetting &setting) {
    return !kinds[setting.kind].isDeclared();
  });
}

void CostModel::resolveForwardMultiples(const KindTable &kinds,
                                        size_t numPipes) {
  KindId forward = *kinds.find(KindClass::Compute, slot::Output);
  std::map<std::pair<Cost, KindId>, int64_t> factors;
  for (const CostSetting &setting : settings)
    if (setting.forwardMultiple)
      factors[{setting.what, setting.kind}] = *setting.forwardMultiple;
  llvm::erase_if(settings, [](const CostSetting &setting) {
    return setting.forwardMultiple.has_value();
  });
  std::vector<CostSetting> declared;
  for (auto [subject, factor] : factors) {
    auto [what, kind] = subject;
    bool isTime = what == Cost::Action;
    int64_t unit = isTime ? cost::unit : amount::unit,
            limit = isTime ? cost::max : amount::max;
    auto add = [&](CostSetting setting) {
      setting.kind = kind;
      setting.forwardMultiple = factor;
      declared.push_back(std::move(setting));
    };
    std::set<std::optional<PipeId>> pipes;
    for (const CostSetting &setting : of(what))
      if (setting.kind == forward)
        pipes.insert(setting.pipe);
    // Pipes of which nothing is said have what F takes by itself.
    if (!pipes.contains(std::nullopt) && pipes.size() != numPipes)
      add({what,
           kind,
           {},
           {},
           {isTime || !hasMemoryCosts(kinds) ? factor : 0}});
    for (CostSetting setting : of(what))
      if (setting.kind == forward) {
        for (int64_t &value : setting.values)
          value = static_cast<int64_t>(std::clamp<decimal::Sum>(
              decimal::Sum(value) * factor / unit, -limit, limit));
        add(std::move(setting));
      }
  }
  settings.insert(settings.begin(), declared.begin(), declared.end());
}

std::vector<const CostSetting *> CostModel::inEffect(size_t numPipes) const {
  using Key = std::tuple<Cost, KindId, StringRef, decltype(CostSetting::link),
                         std::optional<PipeId>>;
  std::map<Key, const CostSetting *> kept;
  auto first = [](Cost what) {
    return Key(what, KindId(), "", std::nullopt, std::nullopt);
  };
  auto forget = [&](Cost from, Cost to) {
    kept.erase(kept.lower_bound(first(from)), kept.lower_bound(first(to)));
  };
  for (const CostSetting &setting : settings) {
    const auto &[what, kind, node, pipe, values, link, forwardMultiple] =
        setting;
    if (what == Cost::GroupSum || what == Cost::GroupMax) {
      forget(Cost::GroupSum, Cost::Action);
      forget(Cost::Overlap, Cost::Latency);
    } else if (what == Cost::Scale) {
      kept.erase(kept.lower_bound(first(Cost::Scale)), kept.end());
    } else if (what == Cost::Jitter) {
      forget(Cost::Jitter, Cost::JitterMicrobatch);
    } else if (what == Cost::ScaleTime) {
      kept.erase(kept.lower_bound(first(Cost::ScaleAction)), kept.end());
    } else if (!link) {
      // What is said of a pipe stands above links, but not above other pipes.
      auto own =
          kept.lower_bound(Key(what, kind, node, std::nullopt, std::nullopt));
      while (own != kept.end() && std::get<0>(own->first) == what &&
             std::get<1>(own->first) == kind && std::get<2>(own->first) == node)
        own = !pipe || own->second->link ? kept.erase(own) : std::next(own);
    }
    kept[Key(what, kind, node, link, pipe)] = &setting;
  }
  std::vector<const CostSetting *> result;
  auto isOfPipeOf = [](const CostSetting &all, const CostSetting &one) {
    return one.pipe && !one.link && one.what == all.what &&
           one.kind == all.kind && one.node == all.node;
  };
  for (auto at = kept.begin(); at != kept.end(); ++at) {
    // What each pipe says for itself leaves nothing of what is said of all.
    auto next = std::next(at), after = next;
    while (after != kept.end() && isOfPipeOf(*at->second, *after->second))
      ++after;
    if (after == next || size_t(std::distance(next, after)) != numPipes)
      result.push_back(at->second);
  }
  return result;
}
