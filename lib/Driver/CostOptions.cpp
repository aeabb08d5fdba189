// The options `--cost` and `--costs`.
#include "CostOptions.h"

#include "ppcc/Import/CostsFile.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SaveAndRestore.h"

#include <map>

using namespace ppcc;
using llvm::StringRef;

namespace {

// ---- What `--cost` takes ----

/// Reads `text` into the costs; gives what it must be when it is not that.
using SetCost = StringRef (*)(StringRef text, CostModel &costs);

constexpr StringRef timeWords = "a number from 0 to 10^9",
                    amountWords = "a number from 0 to 10^12";

template <auto Set> StringRef setTime(StringRef text, CostModel &costs) {
  auto time = decimal::round(text, cost::scale);
  if (!time || *time < 0)
    return timeWords;
  Set(costs, *time);
  return "";
}

template <auto Set, int64_t Least = 0>
StringRef setAmount(StringRef text, CostModel &costs) {
  auto value = decimal::round(text, amount::scale);
  if (!value || *value < Least)
    return Least ? "a number above 0, to 10^12" : amountWords;
  Set(costs, *value);
  return "";
}

/// `2.5`, or `sum` or `max`, perhaps with a factor: `sum*0.8`.
StringRef setOverlap(StringRef text, CostModel &costs) {
  auto [rule, factor] = text.split('*');
  auto time = decimal::round(
      rule == "sum" || rule == "max" ? factor.empty() ? "1" : factor : text,
      cost::scale);
  if (!time || *time < 0 || text.ends_with("*"))
    return "a number from 0 to 10^9, `sum`, `max`, or one of these with a "
           "factor, as in `sum*0.8`";
  costs.overlap.reset();
  if (rule != "sum" && rule != "max") {
    costs.overlap = *time;
    return "";
  }
  costs.groupRule = rule == "max" ? GroupRule::Max : GroupRule::Sum;
  costs.groupFactor = *time;
  return "";
}

struct NamedCost {
  StringRef name;
  SetCost set;
};
constexpr NamedCost namedCosts[] = {
    {"overlap", setOverlap},
    {"comm", setTime<[](CostModel &costs, Time time) {
       costs.latency = time;
       costs.latencies.clear();
     }>},
    {"bandwidth", setAmount<[](CostModel &costs, Amount value) {
       costs.bandwidths.push_back({{}, {value}});
     },
                            1>},
    {"bytes", setAmount<[](CostModel &costs, Amount value) {
       costs.bytes.push_back({{}, {value}});
     }>},
    {"static", setAmount<[](CostModel &costs, Amount value) {
       costs.staticMemory.push_back({{}, {value}});
     }>},
    {"limit", setAmount<[](CostModel &costs, Amount value) {
       costs.memoryLimits = {value};
     }>},
};

/// Reads `NAME=VALUE` into the costs, or into those of parts of actions; gives
/// what is wrong with it.
std::string setCost(StringRef text, const KindTable &kinds, CostModel &costs,
                    std::vector<NodeCost> &partCosts) {
  auto [name, value] = text.split('=');
  if (name.size() == text.size())
    return "`" + text.str() + "` is not of the form NAME=VALUE";
  auto badValue = [&](StringRef words) {
    return words.empty()
               ? std::string()
               : fmt::format("`{}` of `{}` must be {}", value, name, words);
  };
  for (const NamedCost &known : namedCosts)
    if (known.name == name)
      return badValue(known.set(value, costs));
  auto [letters, part] = name.split('.');
  auto kind = kinds.find(letters);
  if (kind && kinds[*kind].isCompute()) {
    auto time = decimal::round(value, cost::scale);
    if (!time || *time < 0)
      return badValue(timeWords);
    if (part.empty())
      costs.actions.push_back({*kind, {}, {*time}});
    else
      partCosts.push_back({*kind, part.str(), *time});
    return "";
  }
  std::vector<StringRef> names;
  for (const KindInfo &info : kinds.rows())
    if (info.isCompute())
      names.push_back(info.letters);
  for (const NamedCost &known : namedCosts)
    names.push_back(known.name);
  return fmt::format("`{}` is none of {}{}", name, llvm::join(names, ", "),
                     didYouMean(name, names));
}

// ---- Costs of parts of actions ----

/// What `--cost F.t=1` says: of each stage, the sum over its layers.
struct LayerCost {
  KindId kind;
  char layer;
  Time time;
};

/// The costs by layer as costs by stage.
void addLayerCosts(llvm::ArrayRef<LayerCost> settings, DiagnosticEngine &diags,
                   Program &program) {
  if (settings.empty())
    return;
  if (program.stageLayers().empty()) {
    diags.report<diag::NoLayout>(Place("--cost"), "--cost KIND.LAYER");
    return;
  }
  std::map<KindId, std::vector<decimal::Sum>> sums;
  for (const LayerCost &setting : settings) {
    std::vector<decimal::Sum> &sum = sums[setting.kind];
    sum.resize(program.stageLayers().size());
    bool isKnown = false;
    for (auto [layers, time] : llvm::zip(program.stageLayers(), sum)) {
      auto count = llvm::count(layers, setting.layer);
      isKnown |= count != 0;
      time += decimal::Sum(count) * setting.time;
    }
    if (!isKnown)
      diags.report<diag::LayoutLacksLayer>(
          Place("--cost"), llvm::join(program.stageLayers(), "|"),
          StringRef(&setting.layer, 1));
  }
  for (const auto &[kind, sum] : sums)
    for (uint32_t pipe = 0; pipe != program.pipes().size(); ++pipe) {
      CostSetting &setting = program.editHead().costs.actions.emplace_back(
          CostSetting{kind, PipeId(pipe), {}});
      for (decimal::Sum time : sum) {
        if (time > cost::max) {
          diags.report<diag::CostTooLarge>(
              Place("--cost"), static_cast<double>(time) / cost::unit,
              cost::max / cost::unit);
          return;
        }
        setting.times.push_back(static_cast<Time>(time));
      }
    }
}

/// The costs of `F.mlp` or `F.t`: of nodes where the program has such, else of
/// layers of the layout.
void addPartCosts(llvm::ArrayRef<NodeCost> settings, DiagnosticEngine &diags,
                  Program &program) {
  std::vector<StringRef> nodes(program.nodes().names.begin(),
                               program.nodes().names.end());
  std::vector<LayerCost> layers;
  for (const NodeCost &setting : settings)
    if (llvm::is_contained(nodes, setting.name))
      program.editHead().costs.nodes.push_back(setting);
    else if (setting.name.size() == 1 && llvm::isAlpha(setting.name[0]))
      layers.push_back({setting.part, setting.name[0], setting.time});
    else
      diags.report<diag::CostsUnknown>(Place("--cost"), "node", setting.name,
                                       didYouMean(setting.name, nodes));
  addLayerCosts(layers, diags, program);
}

} // namespace

void ppcc::addCostOptions(OptionParser &parser, CostOptions &options) {
  parser.each(
      "--cost", "NAME=VALUE",
      "The time of an action kind (F=1.5), of a node (F.mlp=0.5), of a kind in "
      "a layer of the layout (F.t=0.2: summed over the layers of a stage), of "
      "a whole group (overlap=2.5, overlap=sum*0.8), of a message (comm=0.1; "
      "bytes and bandwidth); static memory of a stage, limit of a rank",
      [&](const std::string &text) {
        CostModel unused;
        std::vector<NodeCost> unusedToo;
        options.costs.push_back(text);
        return setCost(text, KindTable(), unused, unusedToo);
      });
  parser.each("--costs", "FILE", options.files,
              "Read costs from a JSON file, see docs/reports.md; --cost "
              "overrides it");
}

bool ppcc::applyCosts(const CostOptions &options, SourceManager &sources,
                      DiagnosticEngine &diags, Program &program) {
  size_t errorsBefore = diags.errorCount();
  // Lists by stage are longer than schedules.
  llvm::SaveAndRestore limit(sources.maxBytes, size_t(64) << 20);
  for (const std::string &name : options.files) {
    auto file = sources.open(name);
    if (!file)
      diags.report<diag::CannotRead>({}, name,
                                     llvm::toString(file.takeError()));
    else
      readCosts(sources.text(*file), *file, sources, diags, program.editHead());
  }
  std::vector<NodeCost> partCosts;
  for (const std::string &text : options.costs) {
    std::string error =
        setCost(text, program.kinds(), program.editHead().costs, partCosts);
    assert(error.empty() && "the command line was checked");
    (void)error;
  }
  addPartCosts(partCosts, diags, program);
  return diags.errorCount() == errorsBefore;
}
