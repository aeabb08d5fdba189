// Reads costs as docs/costs.schema.json describes them.
#include "ppcc/Import/CostsFile.h"

#include "JsonReader.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace ppcc;
using llvm::StringRef;

namespace {

/// What a number may be, and how it is told.
struct NumberType {
  decimal::Scale scale;
  StringRef words;
  bool isSigned = false, isPositive = false;
};
constexpr NumberType timeType{cost::scale, "a number from 0 to 10^9"};
constexpr NumberType amountType{amount::scale, "a number from 0 to 10^12"};
constexpr NumberType signedType{amount::scale, "a number from -10^12 to 10^12",
                                true};
constexpr NumberType factorType{scaling::decimals,
                                "a list of numbers from 0 to 10^6"};
constexpr NumberType bandwidthType{amount::scale, "a number above 0, to 10^12",
                                   false, true};

class CostsReader : JsonReader<diag::CostsShape> {
public:
  CostsReader(StringRef text, uint32_t file, SourceManager &sources,
              DiagnosticEngine &diags, Head &program)
      : JsonReader(text, file, sources, diags), program(program),
        costs(program.costs) {}

  bool read() {
    size_t errorsBefore = diags.errorCount();
    object("the file", [&](StringRef key) { readKey(key); });
    expectEnd();
    return diags.errorCount() == errorsBefore;
  }

private:
  using Add = llvm::function_ref<void(std::optional<PipeId>,
                                      const std::vector<int64_t> &)>;

  void unknown(StringRef what, StringRef name,
               llvm::ArrayRef<StringRef> names) {
    diags.report<diag::CostsUnknown>(lastPlace(), what, name,
                                     didYouMean(name, names));
    cursor.skip();
    if (diags.saturated())
      cursor.stop();
  }

  /// Calls `visit`, which takes the value, for each key of an object.
  void object(StringRef what, llvm::function_ref<void(StringRef)> visit) {
    llvm::StringSet<> seen;
    JsonReader::object(what, [&](StringRef key) {
      if (seen.insert(key).second)
        return visit(key);
      diags.report<diag::ImportJsonTwice>(lastPlace(), key);
      cursor.skip();
    });
  }

  void readKey(StringRef key) {
    struct Key {
      StringRef name;
      void (CostsReader::*read)();
    };
    static constexpr Key keys[] = {
        {"cost", &CostsReader::readActions},
        {"overlap", &CostsReader::readOverlap},
        {"latency", &CostsReader::readLatency},
        {"bandwidth", &CostsReader::readBandwidth},
        {"bytes", &CostsReader::readBytes},
        {"memory", &CostsReader::readMemory},
        {"static", &CostsReader::readStatic},
        {"limit", &CostsReader::readLimit},
        {"scale", &CostsReader::readScale},
    };
    for (const Key &known : keys)
      if (known.name == key)
        return (this->*known.read)();
    StringRef names[std::size(keys)];
    llvm::transform(keys, names, [](const Key &key) { return key.name; });
    unknown("key", key, names);
  }

  void readActions() { readKinds("cost", timeType, costs.actions); }
  void readMemory() { readKinds("memory", signedType, costs.memory); }
  void readBandwidth() {
    readStages("bandwidth", bandwidthType, costs.bandwidths);
  }
  void readBytes() { readStages("bytes", amountType, costs.bytes); }
  void readStatic() { readStages("static", amountType, costs.staticMemory); }

  void readLatency() {
    if (isNumber()) {
      costs.latency = number("latency", timeType);
      costs.latencies.clear();
    } else {
      readStages("latency", timeType, costs.latencies);
    }
  }

  /// A number for whole groups; or a rule, with a factor.
  void readOverlap() {
    if (cursor.peek() != '{') {
      costs.overlap = number("overlap", timeType);
      return;
    }
    object("overlap", [&](StringRef rule) {
      if (rule != "sum" && rule != "max")
        return unknown("rule", rule, {"sum", "max"});
      costs.overlap.reset();
      costs.groupRule = rule == "max" ? GroupRule::Max : GroupRule::Sum;
      costs.groupFactor = number(rule, timeType);
    });
  }

  void readLimit() {
    if (cursor.peek() != '[') {
      costs.memoryLimits = {number("limit", amountType)};
      return;
    }
    costs.memoryLimits = list("limit", amountType);
    checkCount("limit", costs.memoryLimits.size(), program.numRanks,
               fmt::format("{} ranks", program.numRanks));
  }

  /// Lists by microbatch, a later one in the place of those before it.
  void readScale() {
    object("scale", [&](StringRef name) {
      MicrobatchScale scale;
      auto *word = llvm::find(scaling::names(), name);
      scale.of = word == scaling::names().end()
                     ? MicrobatchScale::Of::Time
                     : MicrobatchScale::Of(word - scaling::names().begin());
      if (word == scaling::names().end() && !(scale.kind = computeKind(name)))
        return;
      scale.factors = list(name, factorType);
      uint64_t microbatches = program.totalMicrobatches();
      if (checkCount(name, scale.factors.size(), microbatches,
                     fmt::format("{} microbatches", microbatches)))
        costs.scales.push_back(std::move(scale));
    });
  }

  /// The kind of these letters; nothing, and a report, when none computes.
  std::optional<KindId> computeKind(StringRef letters) {
    auto kind = program.kinds.find(letters);
    if (kind && program.kinds[*kind].isCompute())
      return kind;
    std::vector<StringRef> names;
    for (const KindInfo &info : program.kinds.rows())
      if (info.isCompute())
        names.push_back(info.letters);
    unknown("action", letters, names);
    return std::nullopt;
  }

  bool checkCount(StringRef what, size_t count, size_t expected,
                  const std::string &things) {
    if (count != expected && !cursor.failed())
      diags.report<diag::CostCount>(lastPlace(), what, count, things);
    return count == expected;
  }

  /// `F.mlp`: the cost of a node.
  void readNode(StringRef text) {
    auto [partLetters, name] = text.split('.');
    auto part = program.kinds.find(partLetters);
    if (!part || !llvm::is_contained(program.nodes.names, name)) {
      std::vector<StringRef> names(program.nodes.names.begin(),
                                   program.nodes.names.end());
      return unknown("node", name, names);
    }
    costs.nodes.push_back({*part, name.str(), number(text, timeType)});
  }

  void readKinds(StringRef what, const NumberType &type,
                 std::vector<CostSetting> &settings) {
    object(what, [&](StringRef letters) {
      if (&settings == &costs.actions && letters.contains('.'))
        return readNode(letters);
      auto kind = computeKind(letters);
      if (!kind)
        return;
      readValues(
          letters, type,
          [&](std::optional<PipeId> pipe, const std::vector<int64_t> &values) {
            settings.push_back({*kind, pipe, values});
          });
    });
  }

  void readStages(StringRef what, const NumberType &type,
                  std::vector<StageSetting> &settings) {
    readValues(
        what, type,
        [&](std::optional<PipeId> pipe, const std::vector<int64_t> &values) {
          settings.push_back({pipe, values});
        });
  }

  /// A number, a list by stage, or either of them by pipe.
  void readValues(StringRef what, const NumberType &type, Add add) {
    if (cursor.peek() == '{')
      object(what, [&](StringRef name) { readPipe(what, name, type, add); });
    else if (cursor.peek() == '[')
      readList(what, type, add);
    else
      add(std::nullopt, {number(what, type)});
  }

  void readPipe(StringRef what, StringRef name, const NumberType &type,
                Add add) {
    auto pipe = llvm::find_if(
        program.pipes, [&](const Pipe &pipe) { return pipe.name == name; });
    if (pipe == program.pipes.end()) {
      std::vector<StringRef> names;
      for (const Pipe &pipe : program.pipes)
        names.push_back(pipe.name);
      return unknown("pipe", name, names);
    }
    PipeId id(pipe - program.pipes.begin());
    if (cursor.peek() != '[')
      return add(id, {number(what, type)});
    std::vector<int64_t> values = list(what, type);
    if (checkStages(what, values, id) && !values.empty())
      add(id, values);
  }

  /// A list without a pipe is for each of them.
  void readList(StringRef what, const NumberType &type, Add add) {
    std::vector<int64_t> values = list(what, type);
    for (uint32_t pipe = 0; pipe != program.pipes.size(); ++pipe)
      if (!checkStages(what, values, PipeId(pipe)))
        return;
    if (!values.empty())
      for (uint32_t pipe = 0; pipe != program.pipes.size(); ++pipe)
        add(PipeId(pipe), values);
  }

  bool checkStages(StringRef what, const std::vector<int64_t> &values,
                   PipeId pipe) {
    const Pipe &info = program.pipes[pipe.value];
    return checkCount(
        what, values.size(), info.numStages(),
        fmt::format("{} stages in pipe `{}`", info.numStages(), info.name));
  }

  std::vector<int64_t> list(StringRef what, const NumberType &type) {
    std::vector<int64_t> values;
    cursor.array([&] { values.push_back(number(what, type)); });
    return values;
  }

  bool isNumber() {
    char first = cursor.peek();
    return first == '-' || llvm::isDigit(first);
  }

  /// A number of the type; the least, and a report, for another value.
  int64_t number(StringRef what, const NumberType &type) {
    bool isNumeric = isNumber();
    auto text = cursor.scalar();
    auto value =
        isNumeric && text ? decimal::round(*text, type.scale) : std::nullopt;
    if (value && (type.isSigned || *value >= type.isPositive))
      return *value;
    wrong(what, type.words);
    return type.isPositive;
  }

  Head &program;
  CostModel &costs;
};

} // namespace

bool ppcc::readCosts(StringRef text, uint32_t file, SourceManager &sources,
                     DiagnosticEngine &diags, Head &program) {
  return CostsReader(text, file, sources, diags, program).read();
}
