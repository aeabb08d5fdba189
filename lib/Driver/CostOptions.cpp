// The options `--cost` and `--costs`.
#include "CostOptions.h"

#include "ppcc/Import/CostsFile.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace ppcc;
using llvm::StringRef;

namespace {

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

} // namespace

/// Reads `NAME=VALUE` into the costs; gives what is wrong with it.
static std::string setCost(StringRef text, const KindTable &kinds,
                           CostModel &costs) {
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
  auto [letters, node] = name.split('.');
  auto kind = kinds.find(letters);
  if (kind && kinds[*kind].isCompute()) {
    auto time = decimal::round(value, cost::scale);
    if (!time || *time < 0)
      return badValue(timeWords);
    if (node.empty())
      costs.actions.push_back({*kind, {}, {*time}});
    else
      costs.nodes.push_back({*kind, node.str(), *time});
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

void ppcc::addCostOptions(CLI::App &app, CostOptions &options) {
  app.add_option_function<std::vector<std::string>>(
         "--cost",
         [&](const std::vector<std::string> &texts) {
           for (const std::string &text : texts) {
             CostModel unused;
             if (std::string error = setCost(text, KindTable(), unused);
                 !error.empty())
               throw CLI::ValidationError("--cost", error);
           }
           options.costs = texts;
         },
         "The time of an action kind (F=1.5), of a node (F.mlp=0.5), of a "
         "whole group "
         "(overlap=2.5, overlap=sum*0.8), of a message (comm=0.1; "
         "bytes and bandwidth); static memory of a stage, limit of a rank")
      ->option_text("NAME=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--costs", options.files,
                 "Read costs from a JSON file, see docs/reports.md; --cost "
                 "overrides it")
      ->option_text("FILE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
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
      readCosts(sources.text(*file), *file, sources, diags, program);
  }
  for (const std::string &text : options.costs) {
    std::string error = setCost(text, program.kinds, program.costs);
    assert(error.empty() && "the command line was checked");
    (void)error;
  }
  for (const NodeCost &cost : program.costs.nodes)
    if (!llvm::is_contained(program.nodes.names, cost.name))
      diags.report<diag::CostsUnknown>(
          Place("--cost"), "node", cost.name,
          didYouMean(cost.name,
                     std::vector<StringRef>(program.nodes.names.begin(),
                                            program.nodes.names.end())));
  return diags.errorCount() == errorsBefore;
}
