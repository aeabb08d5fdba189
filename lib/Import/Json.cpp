// Reads the JSON that docs/program-format.md describes.
#include "Importers.h"
#include "JsonFacts.h"
#include "JsonKinds.h"
#include "JsonPipes.h"
#include "JsonRows.h"
#include "NodeTables.h"
#include "Quote.h"
#include "ppcc/Import/CostsFile.h"

#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Loops.h"

#include "llvm/ADT/DenseSet.h"

using namespace ppcc;
using llvm::StringRef;

namespace {

constexpr int64_t formatVersion = 1;
/// Of programs with loops, which readers that know none would run wrongly.
constexpr int64_t rolledVersion = 2;
/// Of programs with stages that have no edge to the next; perhaps with loops.
constexpr int64_t gapsVersion = 3;

/// Builds the program as its parts come, in whatever order, and checks at the
/// end what refers to what.
class Reader {
public:
  explicit Reader(ImportContext &context)
      : context(context), diags(context.diags),
        json(withoutMark(context.sources.text(context.file)), context.file,
             context.sources, context.diags),
        kinds(json, program.editHead()), pipes(json, program.editHead()),
        rows(json, context.options.maxActions, program),
        facts(json, context.options.maxActions, program) {
    program.editHead().sites.clear();
    program.editHead().phases.clear();
  }

  std::optional<Program> read();

private:
  static StringRef withoutMark(StringRef text) {
    text.consume_front("\xEF\xBB\xBF");
    return text;
  }

  void readHead();
  void readVersion();
  void readParams();
  void readPreconnect();
  void readCalls();
  void readLayout();
  void readPhases();
  void readFiles();
  void readSites();

  void finish();
  void finishHead();
  void checkSites();
  void checkPreconnect();

  ImportContext &context;
  DiagnosticEngine &diags;
  Program program;
  ProgramJson json;
  JsonKinds kinds;
  JsonPipes pipes;
  JsonRows rows;
  JsonFacts facts;
  std::vector<RankPair> preconnect;
  StringRef costsText, nodesText;
  std::vector<SourceRange> sitePlaces, pairPlaces;
  SourceRange layoutPlace;
};

std::optional<Program> Reader::read() {
  size_t errorsBefore = diags.errorCount();
  readHead();
  json.expectEnd();
  if (diags.errorCount() == errorsBefore)
    finish();
  if (diags.errorCount() != errorsBefore)
    return std::nullopt;
  return std::move(program);
}

void Reader::readHead() {
  constexpr bool isOptional = true;
  auto readFormat = [&] {
    if (json.cursor.string() != "ppcc.program")
      json.wrong("format", "\"ppcc.program\"");
  };
  auto readRanks = [&] {
    program.editHead().numRanks = json.number("ranks", 1, Program::maxRanks);
  };
  auto readBackward = [&] {
    program.editHead().hasBackward =
        json.boolean("backward", /*otherwise=*/true);
  };
  auto readName = [&] {
    program.editHead().name = json.string("schedule");
  };
  // Costs and nodes are only passed over: they speak of pipes, ranks and kinds.
  json.object(
      "the program",
      {{"format", readFormat},
       {"version", [&] { readVersion(); }},
       {"compiler", [&] { json.string("compiler"); }, isOptional},
       {"schedule", readName},
       {"params", [&] { readParams(); }},
       {"ranks", readRanks},
       {"backward", readBackward},
       {"preconnect", [&] { readPreconnect(); }, isOptional},
       {"calls", [&] { readCalls(); }, isOptional},
       {"layout", [&] { readLayout(); }, isOptional},
       {"costs", [&] { costsText = json.skipObject("costs"); }, isOptional},
       {"kinds", [&] { kinds.read(); }},
       {"nodes", [&] { nodesText = json.skipObject("nodes"); }, isOptional},
       {"phases", [&] { readPhases(); }},
       {"pipes", [&] { pipes.read(); }},
       {"files", [&] { readFiles(); }},
       {"sites", [&] { readSites(); }},
       {"columns", [&] { rows.readColumns(); }},
       {"actions", [&] { rows.readActions(); }},
       {"loops", [&] { rows.readLoops(); }, isOptional},
       {"waits", [&] { facts.readWaits(); }, isOptional},
       {"peak_activations", [&] { facts.readPeakActivations(); }, isOptional}});
}

// ---- Keys ----

void Reader::readVersion() {
  auto version = json.cursor.integer();
  if (version != formatVersion && version != rolledVersion &&
      version != gapsVersion && !json.cursor.failed())
    diags.report<diag::ImportJsonVersion>(
        json.lastPlace(), quote(json.cursor.last()), "1, 2", gapsVersion);
}

void Reader::readParams() {
  json.object("params", [&](StringRef name) {
    std::string key = name.str();
    if (json.cursor.peek() == '"') {
      program.editHead().params.push_back(
          {std::move(key), "text", json.string("params")});
      return;
    }
    auto value = json.cursor.scalar();
    if (!value || *value == "null")
      return json.wrong("params", "an object of numbers, booleans and strings");
    StringRef type = *value == "true" || *value == "false"            ? "bool"
                     : value->find_first_of(".eE") == StringRef::npos ? "int"
                                                                      : "float";
    program.editHead().params.push_back(
        {std::move(key), type.str(), value->str()});
  });
}

void Reader::readPreconnect() {
  llvm::DenseSet<std::pair<int64_t, int64_t>> seen;
  json.list("preconnect", [&] {
    std::array<int64_t, 2> pair;
    if (!json.numbers("preconnect", pair))
      return;
    auto [low, high] = pair;
    if (low < 0 || low >= high || high >= int64_t(Program::maxRanks))
      return json.wrong("preconnect", "pairs of ranks, the smaller first");
    if (!seen.insert({low, high}).second)
      diags.report<diag::ImportJsonPair>(json.lastPlace(), low, high);
    preconnect.push_back({RankId(low), RankId(high)});
    pairPlaces.push_back(json.lastPlace());
  });
}

void Reader::readCalls() {
  auto style = findCallStyle(json.string("calls"));
  if (!style)
    json.wrong("calls", "one of " + llvm::join(callStyleNames(), ", "));
  program.editHead().calls = style.value_or(CallStyle::None);
}

void Reader::readLayout() {
  json.list("layout", [&] {
    std::string layers = json.string("layout");
    layoutPlace = json.lastPlace();
    if (!llvm::all_of(layers, llvm::isAlpha))
      json.wrong("layout", "a list of letters by stage");
    program.editHead().stageLayers.push_back(std::move(layers));
  });
}

void Reader::readPhases() {
  json.list("phases", [&] {
    std::string name = json.string("phases");
    if (program.phases().size() > Program::maxPhases)
      json.tooMany(Program::maxPhases, "phases");
    else
      program.editHead().phases.push_back(std::move(name));
  });
  if (program.phases().empty() || !program.phases().front().empty())
    json.wrong("phases", "a list that begins with \"\"");
}

void Reader::readFiles() {
  json.list("files", [&] {
    program.editHead().files.push_back({json.string("files"), false});
  });
}

void Reader::readSites() {
  json.list("sites", [&] {
    std::array<int64_t, 4> site;
    if (!json.numbers("sites", site))
      return;
    bool isFirst = program.sites().empty();
    bool isUnknown = site == std::array<int64_t, 4>{-1, 0, 0, 0};
    bool fits = llvm::all_of(
        site, [](int64_t n) { return n >= 0 && n < int64_t(UINT32_MAX); });
    if (isFirst ? !isUnknown : !fits)
      json.wrong("sites", "[-1,0,0,0], and then file, line, column, caller");
    Site entry;
    if (!isFirst)
      entry = {uint32_t(site[0]), uint32_t(site[1]), uint32_t(site[2]),
               SiteId(site[3])};
    program.editHead().sites.push_back(entry);
    sitePlaces.push_back(json.lastPlace());
  });
  if (program.sites().empty())
    json.wrong("sites", "a list that begins with [-1,0,0,0]");
}

// ---- The end ----

void Reader::finish() {
  auto isGood = [&, errorsBefore = diags.errorCount()] {
    return diags.errorCount() == errorsBefore;
  };
  finishHead();
  if (!isGood())
    return; // Rows that refer to them would only repeat it.
  if (!nodesText.empty())
    readNodes(nodesText, context.file, context.sources, diags, kinds.numbers(),
              program.editHead());
  if (!costsText.empty())
    readCosts(costsText, context.file, context.sources, diags,
              program.editHead());
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

void Reader::finishHead() {
  rows.checkRanks();
  kinds.resolve();
  pipes.check();
  checkSites();
  checkPreconnect();
  checkLayout(program.head(), layoutPlace, diags);
}

void Reader::checkSites() {
  for (size_t i = 1; i < program.sites().size() && !diags.saturated(); ++i) {
    const Site &site = program.sites()[i];
    if (site.file >= program.files().size())
      diags.report<diag::ImportJsonRange>(
          sitePlaces[i], "file", site.file,
          fmt::format("`files` has {}", program.files().size()));
    if (site.caller.value >= program.sites().size())
      diags.report<diag::ImportJsonRange>(
          sitePlaces[i], "site", site.caller.value,
          fmt::format("`sites` has {}", program.sites().size()));
  }
}

void Reader::checkPreconnect() {
  for (auto [pair, place] : llvm::zip(preconnect, pairPlaces))
    if (pair.high.value >= program.numRanks() && !diags.saturated())
      diags.report<diag::ImportJsonRange>(
          place, "rank", pair.high.value,
          fmt::format("the program has {}", program.numRanks()));
}

} // namespace

bool ppcc::beginsJson(StringRef text) { return text.starts_with("{"); }

std::optional<Program> ppcc::importJson(ImportContext &context) {
  return Reader(context).read();
}
