
#include "JsonHead.h"
#include "ppcc/IR/Transport.h"
#include "ppcc/Proof/Instance.h"
#include "ppcc/Proof/TemplateJson.h"

using namespace ppcc;

bool ppcc::isFamilyFile(uint32_t file, SourceManager &sources) {
  StringRef text = sources.text(file);
  text.consume_front("\xEF\xBB\xBF");
  DiagnosticEngine ignored([](const Diagnostic &) {});
  JsonReader json(text, file, sources, ignored);
  return json.peek() == '{' && json.hasKey("families");
}

namespace {

/// Reads what all programs share once, and what each range has of its own when
/// it is asked for.
class FamilyReader : JsonHead {
public:
  explicit FamilyReader(ImportContext &context) : JsonHead(context) {}

  /// The program that the options choose.
  std::optional<Program> readOne() {
    if (!readShared())
      return std::nullopt;
    if (ranges.empty())
      return wrong("it has no ranges");
    auto number = chosen();
    if (!number)
      return std::nullopt;
    auto range = llvm::find_if(ranges, [&](const proof::ProgramRange &range) {
      return *number >= range.from && (!range.to || *number <= *range.to) &&
             (*number - range.from) % range.modulus == 0;
    });
    if (range == ranges.end() || range->verdict != "valid") {
      bool isGiven = range != ranges.end() && !range->reason.empty();
      return diags.report<diag::ImportNoFamily>(
          Location("-D " + free), free, *number,
          isGiven ? range->reason : "no range contains it");
    }
    int64_t n = (*number - range->from) / range->modulus;
    proof::Template rows;
    if (!readFamily(range - ranges.begin(), n, rows))
      return std::nullopt;
    uint64_t maxActions = context.options.maxActions;
    if (proof::numRows(rows, n) > maxActions)
      return diags.report<diag::ImportTooMany>(place, maxActions, "actions");
    if (std::string fault = proof::instantiate(rows, n, program);
        !fault.empty())
      return wrong(fault);
    program.setFacts({{}, std::move(preconnect)});
    context.transports = transports;
    context.isInstance = true;
    return std::move(program);
  }

  std::optional<proof::ParametricProgram> readAll() {
    if (!readShared())
      return std::nullopt;
    if (!findBy(ranges, "valid", &proof::ProgramRange::verdict))
      return wrong("none is valid");
    proof::ParametricProgram all{head.name, free, transports, ranges};
    for (auto [i, range] : llvm::enumerate(all.ranges)) {
      if (range.verdict != "valid")
        continue;
      auto family = std::make_shared<proof::ResidueFamily>();
      bool isOne = range.to == range.from;
      if (!readFamily(i, isOne ? 0 : 1, family->withMessages))
        return std::nullopt;
      family->base = range.from;
      family->step = range.modulus;
      family->preconnect = preconnect;
      Rows none;
      none.layout(std::vector<uint32_t>(head.numRanks));
      family->head = Program(head).withRows(std::move(none));
      family->withMessages.head = &family->head.head();
      if (!isOne) {
        readFamilyParams(i, 2);
        family->secondParams = head.params;
      }
      range.programs = std::move(family);
    }
    return all;
  }

private:
  /// Sums of two products with a small number fit.
  static constexpr int64_t maxNumber = int64_t(1) << 40;

  DiagnosticEngine::Builder wrong(const std::string &why) {
    return diags.report<diag::ImportFamily>(place, why);
  }

  /// Reads all but what each range has of its own.
  bool readShared() {
    JsonReader whole = json;
    whole.skip(); // Finds where the JSON itself is wrong.
    whole.expectEnd();
    if (!json.isGood())
      return false;
    enum { Always, Needed, Optional };
    enum { All, One };
    std::vector<JsonField> fields;
#define HEAD(Item, Json, Need, Of)                                             \
  if (Of == All)                                                               \
    fields.push_back({Json, [this] { read##Item(Json); }, Need == Optional});
#define HEAD_JSON(Item, Json, Need, Of) HEAD(Item, Json, Need, Of)
#include "ppcc/IR/Head.def"
    auto readParameter = [&] { order.push_back(json.string("parameters")); };
    auto readTransport = [&] {
      transports.push_back(json.string("transports"));
      if (!findTransport(transports.back()))
        json.wrong("transports", "names of transports");
    };
    llvm::append_range(
        fields,
        std::array{json.textField("for", free),
                   optional(json.listField("parameters", readParameter)),
                   optional(json.listField("transports", readTransport)),
                   json.listField("families", [&] { readRange(); })});
    json.object("the program", fields);
    json.expectEnd();
    return json.isGood();
  }

  /// Takes what is said of a range; its programs are passed over.
  void readRange() {
    proof::ProgramRange range;
    std::string verdict;
    bool hasPrograms = false;
    auto readTo = [&] {
      if (json.peek() == 'n')
        return json.skip(); // null
      range.to = json.number("to", 1, INT64_MAX);
    };
    auto passOver = [&] {
      json.skip();
      hasPrograms = true;
    };
    json.object("a family",
                {json.numberField("from", range.from, 1, maxNumber),
                 json.numberField("modulus", range.modulus, 1, maxNumber),
                 optional({"to", readTo}), optional({"actions", passOver}),
                 optional(json.textField("reason", range.reason)),
                 optional(json.textField("verdict", verdict))});
    range.residue = range.from % range.modulus;
    range.verdict = hasPrograms             ? "valid"
                    : verdict == "excluded" ? "excluded"
                                            : "invalid";
    ranges.push_back(std::move(range));
    families.push_back(json.last());
  }

  /// Reads the programs of a range: their rows, and the head of that of n.
  bool readFamily(size_t i, int64_t n, proof::Template &rows) {
    readFamilyParams(i, n);
    head.phases.clear();
    head.sites.clear();
    preconnect.clear();
    using Lists = std::vector<std::vector<int64_t>>;
    Lists microbatches;
    std::vector<Lists> ranks;
    auto list = [&](StringRef key, Lists &lists) {
      json.list(key, [&] {
        if (auto numbers = json.integers())
          lists.push_back(std::move(*numbers));
        else
          json.wrong(key, "lists of integers");
      });
    };
    auto readRank = [&] { list("actions", ranks.emplace_back()); };
    json.within(families[i], [&] {
      json.object(
          "a family",
          {{"phases", [&] { readPhases("phases"); }},
           {"sites", [&] { readSites("sites"); }},
           optional({"preconnect", [&] { readPreconnect("preconnect"); }}),
           {"microbatches", [&] { list("microbatches", microbatches); }},
           json.listField("actions", readRank)});
    });
    for (Lists &rank : ranks)
      for (std::vector<int64_t> &row : rank)
        if (!row.empty()) // Kinds that the file does not have are refused.
          row[0] = size_t(row[0]) < kinds.numbers().size()
                       ? int64_t(kinds.numbers()[row[0]].value)
                       : -1;
    if (!json.isGood())
      return false;
    std::string fault = proof::makeTemplate(
        microbatches, std::move(ranks), head,
        proof::SiteCounts{head.phases.size(), head.sites.size()}, rows);
    return fault.empty() || bool(wrong(fault));
  }

  /// Reads the parameters of n of a range, in the order of the file.
  void readFamilyParams(size_t i, int64_t n) {
    head.params.clear();
    auto read = [&](StringRef name) {
      if (json.peek() != '[')
        return readParam("params", name);
      // What overflows is refused with the microbatches, which are as large.
      if (auto growth = json.numbers<2>("params"))
        head.params.push_back(
            {name.str(), "int",
             std::to_string(int64_t(uint64_t((*growth)[0]) +
                                    uint64_t(n) * uint64_t((*growth)[1])))});
    };
    json.within(families[i], [&] {
      json.object("a family",
                  optional({"params", [&] { json.object("params", read); }}));
    });
    head.params.push_back(
        {free, "int", std::to_string(ranges[i].from + ranges[i].modulus * n)});
    std::ranges::stable_sort(head.params, {}, [&](const ProgramParam &param) {
      return llvm::find(order, param.name) - order.begin();
    });
  }

  /// The value of the parameter.
  std::optional<int64_t> chosen() {
    std::optional<int64_t> result;
    for (const auto &[name, value] : context.options.params) {
      int64_t number;
      if (name != free && context.options.ignoresUnknownParams)
        continue;
      if (name != free || StringRef(value).getAsInteger(10, number) ||
          number < 1)
        return diags.report<diag::ImportFamilyValue>(Location("-D " + name),
                                                     free);
      result = number;
    }
    if (!result)
      diags.report<diag::ImportFamilyValue>(place, free);
    return result;
  }

  SourceRange place{context.sources.loc(context.file, 0),
                    context.sources.loc(context.file, 1)};
  std::string free;
  std::vector<std::string> order; ///< Of parameters, by name.
  std::vector<std::string> transports;
  std::vector<proof::ProgramRange> ranges; ///< Without programs.
  std::vector<StringRef> families;         ///< Their texts.
};

} // namespace

std::optional<Program> ppcc::importFamilies(ImportContext &context) {
  return FamilyReader(context).readOne();
}

std::optional<proof::ParametricProgram>
ppcc::readFamilies(ImportContext &context) {
  return FamilyReader(context).readAll();
}
