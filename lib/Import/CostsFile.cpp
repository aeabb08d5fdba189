// Reads costs as docs/costs.schema.json describes them.
#include "ppcc/Basic/Diagnostics/Simulation.h"
#include "ppcc/Import/Importer.h"

#include "JsonReader.h"

#include "llvm/ADT/StringSet.h"

using namespace ppcc;

namespace {

class CostsReader : JsonReader {
public:
  CostsReader(StringRef text, uint32_t file, SourceManager &sources,
              DiagnosticEngine &diags, Head &head)
      : JsonReader(text, file, sources, diags, reportShape<diag::CostsShape>),
        head(head) {}

  bool read() {
    object("the file", [&](StringRef key) { readKey(key); });
    expectEnd();
    return isGood();
  }

private:
  void unknown(StringRef what, StringRef name, ArrayRef<StringRef> names) {
    diags.report<diag::CostsUnknown>(lastPlace(), what, name,
                                     didYouMean(name, names));
    skip();
    if (diags.saturated())
      stop();
  }

  /// Calls `visit`, which takes the value, for each key of an object.
  void object(StringRef what, function_ref<void(StringRef)> visit) {
    llvm::StringSet<> seen;
    JsonReader::object(what, [&](StringRef key) {
      if (seen.insert(key).second)
        return visit(key);
      diags.report<diag::ImportJsonTwice>(lastPlace(), key);
      skip();
    });
  }

  void readKey(StringRef item) {
    if (!llvm::is_contained(costItems(), item))
      return unknown("key", item, costItems());
    if (auto whole = findCost(item, "", head.kinds))
      return readValues(item, std::move(*whole));
    object(item, [&](StringRef subject) {
      auto setting = findCost(item, subject, head.kinds);
      if (!setting)
        return unknown(item, subject, costSubjects(item, head.kinds));
      const std::vector<std::string> &nodes = head.nodes.names;
      if (rowOf(setting->what).isOfNode() &&
          !llvm::is_contained(nodes, setting->node))
        return unknown("node", setting->node, namesIn(nodes));
      readValues(subject, std::move(*setting));
    });
  }

  /// What a setting takes: a number; a list by stage, rank or microbatch; of
  /// stages, either of them by pipe; or, of messages, a number by ranks.
  void readValues(StringRef what, CostSetting setting) {
    const CostRow &row = rowOf(setting.what);
    CostGranularity granularity = row.granularity;
    bool isList = peek() == '[' || granularity == CostGranularity::Microbatches;
    if (row.isByStage() && peek() == '{')
      return object(what, [&](StringRef name) {
        if (granularity == CostGranularity::Links && name.contains('-'))
          readLink(what, name, setting);
        else
          readPipe(what, name, setting);
      });
    if (!isList || granularity == CostGranularity::One) {
      setting.values = {number(what, setting)};
      return add(std::move(setting));
    }
    setting.values = list(what, setting);
    if (row.isByStage())
      return addToEach(what, setting);
    bool isOfRanks = granularity == CostGranularity::Ranks;
    if (checkCount(what, setting.values.size(),
                   isOfRanks ? head.numRanks : head.totalMicrobatches(),
                   isOfRanks ? "ranks" : "microbatches"))
      add(std::move(setting));
  }

  /// A pipe may have no stages.
  void add(CostSetting setting) {
    if (!setting.values.empty())
      head.costs.settings.push_back(std::move(setting));
  }

  bool checkCount(StringRef what, size_t count, uint64_t expected,
                  std::string_view things) {
    if (count != expected && isReading())
      diags.report<diag::CostCount>(lastPlace(), what, count,
                                    fmt::format("{} {}", expected, things));
    return count == expected;
  }

  /// `0-1`: from rank 0 to rank 1.
  void readLink(StringRef what, StringRef name, CostSetting setting) {
    auto [from, to] = name.split('-');
    uint32_t ranks[2];
    if (from.getAsInteger(10, ranks[0]) || to.getAsInteger(10, ranks[1]) ||
        ranks[0] >= head.numRanks || ranks[1] >= head.numRanks ||
        ranks[0] == ranks[1] ||
        name != fmt::format("{}-{}", ranks[0], ranks[1])) // Not `0-01`, too.
      return unknown("pipe or pair of ranks", name, {});
    setting.link = {RankId(ranks[0]), RankId(ranks[1])};
    setting.values = {number(what, setting)};
    add(std::move(setting));
  }

  void readPipe(StringRef what, StringRef name, CostSetting setting) {
    auto *pipe = findBy(head.pipes, name, &Pipe::name);
    if (!pipe)
      return unknown("pipe", name, namesIn(head.pipes, &Pipe::name));
    setting.pipe = PipeId(pipe - head.pipes.data());
    bool isList = peek() == '[';
    setting.values =
        isList ? list(what, setting) : std::vector{number(what, setting)};
    if (!isList || checkStages(what, setting.values, *setting.pipe))
      add(std::move(setting));
  }

  /// A list without a pipe is for each of them.
  void addToEach(StringRef what, CostSetting setting) {
    for (PipeId pipe : head.pipeIds())
      if (!checkStages(what, setting.values, pipe))
        return;
    for (PipeId pipe : head.pipeIds()) {
      setting.pipe = pipe;
      add(setting);
    }
  }

  bool checkStages(StringRef what, const std::vector<int64_t> &values,
                   PipeId pipe) {
    const Pipe &info = head.pipes[pipe.value];
    return checkCount(what, values.size(), info.numStages(),
                      fmt::format("stages in pipe `{}`", info.name));
  }

  std::vector<int64_t> list(StringRef what, const CostSetting &setting) {
    std::vector<int64_t> values;
    array([&] { values.push_back(number(what, setting)); });
    return values;
  }

  /// What the setting can be; 0, and a report, for another value.
  int64_t number(StringRef what, const CostSetting &setting) {
    const CostNumber &type = rowOf(setting.what).number;
    char first = peek();
    bool isNumeric = first == '-' || llvm::isDigit(first);
    auto text = scalar();
    auto value = isNumeric && text ? type.parse(*text) : std::nullopt;
    if (!value)
      wrong(what, type.description);
    return value.value_or(0);
  }

  Head &head;
};

} // namespace

bool ppcc::readCosts(StringRef text, uint32_t file, SourceManager &sources,
                     DiagnosticEngine &diags, Head &head) {
  return CostsReader(text, file, sources, diags, head).read();
}
