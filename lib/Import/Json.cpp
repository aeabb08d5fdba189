// Reads the JSON that docs/program-format.md describes.
#include "Importers.h"
#include "JsonFacts.h"
#include "JsonKinds.h"
#include "JsonPipes.h"
#include "JsonRows.h"
#include "NodeTables.h"
#include "ppcc/Basic/Diagnostics/Import.h"
#include "ppcc/Import/CostsFile.h"
#include "ppcc/Import/Families.h"

#include "ppcc/IR/Calls.h"

using namespace ppcc;

namespace {

/// Those that are read: of programs; of those with loops, which readers that
/// know none would run wrongly; of those with stages that have no edge to the
/// next, perhaps with loops.
constexpr int64_t formatVersion = 1, gapsVersion = 3;

/// Builds the program as its parts come, in whatever order, and checks at the
/// end what refers to what.
class ProgramReader {
public:
  explicit ProgramReader(ImportContext &context)
      : context(context), diags(context.diags), head(program.editHead()),
        json(withoutMark(context.sources.text(context.file)), context.file,
             context.sources, context.diags),
        kinds(json, head), pipes(json, head),
        rows(json, context.options.maxActions, program),
        facts(json, context.options.maxActions, program) {
    head.sites.clear();
    head.phases.clear();
  }

  std::optional<Program> read() {
    size_t errorsBefore = diags.errorCount();
    readHead();
    json.expectEnd();
    if (diags.errorCount() == errorsBefore)
      finish();
    if (diags.errorCount() != errorsBefore)
      return std::nullopt;
    return std::move(program);
  }

private:
  static StringRef withoutMark(StringRef text) {
    text.consume_front("\xEF\xBB\xBF");
    return text;
  }

  void readHead() {
    enum { Needed, Optional };
    json.object("the program", {
#define HEAD(Item, Text, Json, Need)                                           \
  {Json, [&] { read##Item(Json); }, Need == Optional},
#define HEAD_SECTION(Item, Json, Need) HEAD(Item, "", Json, Need)
#define HEAD_JSON(Item, Json, Need) HEAD(Item, "", Json, Need)
#include "ppcc/IR/Head.def"
                               });
  }

  // ---- Keys ----

  void readCompiler(StringRef key) { json.string(key); }
  void readSchedule(StringRef key) { head.name = json.string(key); }
  void readRanks(StringRef key) {
    head.numRanks = json.number(key, 1, Program::maxRanks);
  }
  void readBackward(StringRef key) {
    head.hasBackward = json.boolean(key, /*otherwise=*/true);
  }
  void readProven(StringRef) { json.cursor.skip(); } // Proofs are made.
  // They speak of pipes, ranks and kinds, which may stand behind them.
  void readCosts(StringRef key) { costsText = json.skipObject(key); }
  void readNodes(StringRef key) { nodesText = json.skipObject(key); }
  void readKinds(StringRef key) {
    json.list(key, [&] { kinds.read(); });
  }
  void readPipes(StringRef key) {
    json.list(key, [&] { pipes.read(); });
  }
  void readFiles(StringRef key) {
    json.list(key, [&] { head.files.push_back({json.string(key), false}); });
  }
  void readColumns(StringRef) { rows.readColumns(); }
  void readActions(StringRef) { rows.readActions(); }
  void readLoops(StringRef) { rows.readLoops(); }
  void readWaits(StringRef) { facts.readWaits(); }
  void readPeakActivations(StringRef) { facts.readPeakActivations(); }

  void readFormat(StringRef key) {
    if (json.cursor.string() != "ppcc.program")
      json.wrong(key, "\"ppcc.program\"");
  }

  void readVersion(StringRef key) {
    auto version = json.cursor.integer();
    if ((!version || *version < formatVersion || *version > gapsVersion) &&
        !json.cursor.failed())
      diags.report<diag::ImportJsonVersion>(
          json.lastPlace(), quote(json.cursor.last()), "1, 2", gapsVersion);
  }

  void readParams(StringRef key) {
    json.object(key, [&](StringRef name) {
      ProgramParam param{name.str(), "text", ""};
      if (json.cursor.peek() == '"') {
        param.value = json.string(key);
        return head.params.push_back(std::move(param));
      }
      auto value = json.cursor.scalar();
      if (!value || *value == "null")
        return json.wrong(key, "an object of numbers, booleans and strings");
      param.type = *value == "true" || *value == "false"            ? "bool"
                   : value->find_first_of(".eE") == StringRef::npos ? "int"
                                                                    : "float";
      param.value = value->str();
      head.params.push_back(std::move(param));
    });
  }

  void readPreconnect(StringRef key) {
    json.list(key, [&] { readPair(key); });
  }
  void readPair(StringRef key) {
    std::array<int64_t, 2> pair;
    if (!json.numbers(key, pair))
      return;
    auto [low, high] = pair;
    if (low < 0 || low >= high || high >= int64_t(Program::maxRanks))
      return json.wrong(key, "pairs of ranks, the smaller first");
    if (!pairs.insert({low, high}).second)
      diags.report<diag::ImportJsonPair>(json.lastPlace(), low, high);
    preconnect.push_back({RankId(low), RankId(high)});
    pairPlaces.push_back(json.lastPlace());
  }

  void readCalls(StringRef key) {
    head.calls = json.word(key, findCallStyle,
                           "one of " + llvm::join(callStyleNames(), ", "))
                     .value_or(CallStyle::None);
  }

  void readLayout(StringRef key) {
    json.list(key, [&] { readLayers(key); });
  }
  void readLayers(StringRef key) {
    std::string layers = json.string(key);
    layoutPlace = json.lastPlace();
    if (!llvm::all_of(layers, llvm::isAlpha))
      json.wrong(key, "a list of letters by stage");
    head.stageLayers.push_back(std::move(layers));
  }

  void readPhases(StringRef key) {
    json.list(key, [&] {
      std::string name = json.string(key);
      if (head.phases.size() > Program::maxPhases)
        json.tooMany(Program::maxPhases, "phases");
      else
        head.phases.push_back(std::move(name));
    });
    if (head.phases.empty() || !head.phases.front().empty())
      json.wrong(key, "a list that begins with \"\"");
  }

  void readSites(StringRef key) {
    json.list(key, [&] {
      std::array<int64_t, 4> site;
      if (!json.numbers(key, site))
        return;
      bool isFirst = head.sites.empty();
      bool isUnknown = site == std::array<int64_t, 4>{-1, 0, 0, 0};
      bool fits = llvm::all_of(
          site, [](int64_t n) { return n >= 0 && n < int64_t(UINT32_MAX); });
      if (isFirst ? !isUnknown : !fits)
        json.wrong(key, "[-1,0,0,0], and then file, line, column, caller");
      auto [file, line, column, caller] = site;
      head.sites.push_back(isFirst ? Site()
                                   : Site{uint32_t(file), uint32_t(line),
                                          uint32_t(column), SiteId(caller)});
      sitePlaces.push_back(json.lastPlace());
    });
    if (head.sites.empty())
      json.wrong(key, "a list that begins with [-1,0,0,0]");
  }

  // ---- The end ----

  void finish() {
    auto isGood = [&, errorsBefore = diags.errorCount()] {
      return diags.errorCount() == errorsBefore;
    };
    rows.checkRanks();
    kinds.resolve();
    pipes.check();
    checkSites();
    checkPreconnect();
    checkLayout(head, layoutPlace, diags);
    if (!isGood())
      return; // Rows that refer to them would only repeat it.
    if (!nodesText.empty())
      ppcc::readNodes(nodesText, context.file, context.sources, diags,
                      kinds.numbers(), head);
    if (!costsText.empty())
      ppcc::readCosts(costsText, context.file, context.sources, diags, head);
    rows.finish(kinds.numbers());
    if (isGood() && rows.hasLoops())
      facts.checkNoWaits();
    if (isGood())
      rows.finishLoops();
    if (!isGood())
      return;
    program.setFacts({{}, std::move(preconnect)});
    if (rows.hasLoops())
      program = unrolled(program);
    else
      facts.checkWaits();
    facts.checkPeakActivations();
  }

  void checkSites() {
    for (auto [site, place] : llvm::zip(head.sites, sitePlaces)) {
      if (&site == &head.sites.front() || diags.saturated())
        continue;
      if (site.file >= head.files.size())
        diags.report<diag::ImportJsonRange>(
            place, "file", site.file,
            fmt::format("`files` has {}", head.files.size()));
      if (site.caller.value >= head.sites.size())
        diags.report<diag::ImportJsonRange>(
            place, "site", site.caller.value,
            fmt::format("`sites` has {}", head.sites.size()));
    }
  }

  void checkPreconnect() {
    for (auto [pair, place] : llvm::zip(preconnect, pairPlaces))
      if (pair.high.value >= head.numRanks && !diags.saturated())
        diags.report<diag::ImportJsonRange>(
            place, "rank", pair.high.value,
            fmt::format("the program has {}", head.numRanks));
  }

  ImportContext &context;
  DiagnosticEngine &diags;
  Program program;
  Head &head;
  ProgramJson json;
  JsonKinds kinds;
  JsonPipes pipes;
  JsonRows rows;
  JsonFacts facts;
  std::vector<RankPair> preconnect;
  DenseSet<std::pair<int64_t, int64_t>> pairs; ///< The same.
  StringRef costsText, nodesText;
  std::vector<SourceRange> sitePlaces, pairPlaces;
  SourceRange layoutPlace;
};

} // namespace

bool ppcc::beginsJson(StringRef text) { return text.starts_with("{"); }

std::optional<Program> ppcc::importJson(ImportContext &context) {
  if (isForAll(context.sources.text(context.file)))
    return importFamilies(context);
  return ProgramReader(context).read();
}
