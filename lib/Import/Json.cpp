// Reads the JSON that docs/program-format.md describes.
#include "Importers.h"
#include "JsonReader.h"
#include "NodeTables.h"
#include "Quote.h"
#include "ppcc/Analysis/Activations.h"
#include "ppcc/Analysis/ReceiveBuffers.h"
#include "ppcc/Import/CostsFile.h"

#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Loops.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <array>

using namespace ppcc;
using llvm::StringRef;

namespace {

constexpr int64_t formatVersion = 1;
/// Of programs with loops, which readers that know none would run wrongly.
constexpr int64_t rolledVersion = 2;
/// Of programs with stages that have no edge to the next; perhaps with loops.
constexpr int64_t gapsVersion = 3;

/// The columns of an action in the order of the format, with the numbers that
/// fit.
struct Column {
  StringRef name;
  int64_t least, most;
};
constexpr Column columns[] = {
    {"kind", 0, 0xFF},
    {"pipe", 0, Program::maxPipes - 1},
    {"stage", 0, Program::maxStages - 1},
    {"microbatch", -1, Program::maxMicrobatches - 1},
    {"peer", -1, Program::maxStages - 1},
    {"phase", 0, Program::maxPhases},
    {"group", -1, UINT32_MAX - 1},
    {"site", 0, UINT32_MAX - 1},
};
enum {
  KindColumn,
  PipeColumn,
  StageColumn,
  MicrobatchColumn,
  PeerColumn,
  PhaseColumn,
  GroupColumn,
  SiteColumn
};

/// Builds the program as its parts come, in whatever order, and checks at the
/// end what refers to what.
class Reader : JsonReader<diag::ImportJsonShape> {
public:
  explicit Reader(ImportContext &context)
      : JsonReader(withoutMark(context.sources.text(context.file)),
                   context.file, context.sources, context.diags),
        context(context) {
    program.sites.clear();
    program.phases.clear();
  }

  std::optional<Program> read() {
    size_t errorsBefore = diags.errorCount();
    readTop();
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

  /// A key of an object, what reads its value, and whether it may be absent.
  struct Key {
    StringRef name;
    void (Reader::*read)();
    bool isOptional = false;
  };
  static const Key topKeys[], kindKeys[], pipeKeys[], edgeKeys[], tensorKeys[];

  // Values.

  /// An integer from `least` to `most`; `least`, and a report, for another
  /// value.
  int64_t number(StringRef what, int64_t least, int64_t most) {
    auto value = cursor.integer();
    if (value && *value >= least && *value <= most)
      return *value;
    wrong(what, fmt::format("an integer from {} to {}", least, most));
    return least;
  }
  std::string string(StringRef what) {
    auto value = cursor.string();
    if (!value)
      wrong(what, "a string");
    return value.value_or("");
  }
  /// Calls `visit` for each element, which takes it.
  void list(StringRef what, llvm::function_ref<void()> visit) {
    bool isList = cursor.peek() == '[';
    cursor.array(visit);
    if (!isList)
      wrong(what, "a list");
  }
  /// A list of `N` integers; false, and a report, for another value.
  template <size_t N>
  bool numbers(StringRef what, std::array<int64_t, N> &values) {
    size_t count = 0;
    bool good = cursor.peek() == '[';
    cursor.array([&] {
      auto value = cursor.integer();
      good &= value && count < N;
      if (good)
        values[count] = *value;
      ++count;
    });
    if (good && count == N)
      return true;
    wrong(what, fmt::format("a list of {} integers", N));
    return false;
  }
  /// Reads an object by a table of its keys; others are passed over.
  void object(StringRef what, llvm::ArrayRef<Key> keys) {
    bool isObject = cursor.peek() == '{';
    uint32_t seen = 0;
    cursor.object([&](StringRef name) {
      auto key =
          llvm::find_if(keys, [&](const Key &key) { return key.name == name; });
      if (key == keys.end()) {
        cursor.skip();
        return;
      }
      uint32_t bit = 1u << (key - keys.begin());
      SourceRange place = lastPlace();
      if (seen & bit) {
        diags.report<diag::ImportJsonTwice>(place, key->name);
        cursor.skip();
        return;
      }
      seen |= bit;
      (this->*key->read)();
    });
    if (!isObject)
      wrong(what, "an object");
    else if (!cursor.failed() && !diags.saturated())
      reportMissing(what, keys, seen);
  }

  void reportMissing(StringRef what, llvm::ArrayRef<Key> keys, uint32_t seen) {
    std::string missing;
    for (auto [i, key] : llvm::enumerate(keys))
      if (!key.isOptional && !(seen & 1u << i))
        missing += fmt::format("{}`{}`", missing.empty() ? "" : ", ", key.name);
    if (!missing.empty())
      diags.report<diag::ImportJsonMissing>(lastPlace(), what, missing);
  }

  void readTop();

  // The keys of a program.

  void readFormat() {
    if (cursor.string() != "ppcc.program")
      wrong("format", "\"ppcc.program\"");
  }
  void readVersion() {
    auto version = cursor.integer();
    if (version != formatVersion && version != rolledVersion &&
        version != gapsVersion && !cursor.failed())
      diags.report<diag::ImportJsonVersion>(lastPlace(), quote(cursor.last()),
                                            "1, 2", gapsVersion);
  }
  void readCompiler() { string("compiler"); }
  void readSchedule() { program.name = string("schedule"); }
  void readParams();
  void readRanks() { program.numRanks = number("ranks", 1, Program::maxRanks); }
  void readBackward() {
    auto value = cursor.boolean();
    if (!value)
      wrong("backward", "true or false");
    program.hasBackward = value.value_or(true);
  }
  void readLayout();
  void readPreconnect();
  void readCalls() {
    auto style = findCallStyle(string("calls"));
    if (!style)
      wrong("calls", "one of " + llvm::join(callStyleNames(), ", "));
    program.calls = style.value_or(CallStyle::None);
  }
  // Only passed over at first: they speak of pipes, ranks and kinds.
  void readCostsText() { skipObject("costs", costsText); }
  void readNodesText() { skipObject("nodes", nodesText); }
  void skipObject(StringRef what, StringRef &kept) {
    bool isObject = cursor.peek() == '{';
    cursor.skip();
    if (isObject)
      kept = cursor.last();
    else
      wrong(what, "an object");
  }
  void readKinds();
  void readLetters() { letters = string("letters"); }
  void readClass() { kindClass = string("class"); }
  void readPer() {
    std::string per = string("per");
    auto scope = llvm::find(kindScopeNames(), per);
    if (scope == kindScopeNames().end())
      return wrong("per", "\"microbatch\", \"stage\" or \"rank\"");
    declared.scope = static_cast<KindScope>(scope - kindScopeNames().begin());
  }
  void readLane() {
    std::string name = string("lane");
    auto lane = isWord(name) ? program.kinds.lane(name) : std::nullopt;
    if (!lane)
      return wrong("lane", fmt::format("a word, the name of one of at most {} "
                                       "lanes",
                                       KindTable::maxKinds));
    declared.lane = *lane;
  }
  static bool isWord(StringRef text) {
    return !text.empty() && llvm::all_of(text, [](char c) {
      return llvm::isAlnum(c) || c == '_';
    });
  }
  void readAfter() { readRules("after", false); }
  void readBefore() { readRules("before", true); }
  void readRules(StringRef key, bool isBefore) {
    list(key, [&] {
      size_t rule = declared.rules.size();
      declared.rules.push_back({isBefore, {}});
      list(key, [&] {
        std::string name = string(key);
        namedKinds.push_back({nextKind(), rule, name, lastPlace()});
      });
    });
  }
  void readRequired() {
    auto value = cursor.boolean();
    if (!value)
      wrong("required", "true or false");
    declared.isRequired = value.value_or(false);
  }
  void readRestores() {
    std::string name = string("restores");
    namedKinds.push_back({nextKind(), std::nullopt, name, lastPlace()});
  }
  void readInFlight() {
    declared.inFlight = number("in_flight", 1, UINT32_MAX);
  }
  void readCollective();
  KindId nextKind() const { return KindId(program.kinds.size()); }
  void declareKind();
  void resolveKinds();
  void addKind();
  void readPhases() {
    list("phases", [&] {
      std::string name = string("phases");
      if (program.phases.size() > Program::maxPhases)
        tooMany(Program::maxPhases, "phases");
      else
        program.phases.push_back(std::move(name));
    });
    if (program.phases.empty() || !program.phases.front().empty())
      wrong("phases", "a list that begins with \"\"");
  }
  void tooMany(uint64_t limit, StringRef what) {
    diags.report<diag::ImportTooMany>(lastPlace(), limit, what);
    cursor.stop();
  }
  void readPipes();
  void readPipeName() { pipe.name = string("name"); }
  void readPipeMicrobatches() {
    std::array<int64_t, 2> ends;
    if (!numbers("microbatches", ends))
      return;
    if (ends[0] < 0 || ends[1] < ends[0] ||
        ends[1] > int64_t(Program::maxMicrobatches))
      return wrong("microbatches", "the first, and one past the last");
    pipe.firstMicrobatch = ends[0];
    pipe.numMicrobatches = ends[1] - ends[0];
  }
  void readRankOfStage() {
    list("rank_of_stage", [&] {
      int64_t rank = number("rank_of_stage", 0, Program::maxRanks - 1);
      if (pipe.numStages() == Program::maxStages)
        return tooMany(Program::maxStages, "stages in a pipe");
      pipe.rankOfStage.push_back(RankId(rank));
    });
  }
  void readSkipEdges() {
    list("skip_edges", [&] {
      std::array<int64_t, 2> edge;
      if (!numbers("skip_edges", edge))
        return;
      if (edge[0] < 0 || edge[1] > int64_t(Program::maxStages) ||
          edge[0] + 1 >= edge[1])
        return wrong("skip_edges",
                     "pairs of stages, the second more than one beyond the "
                     "first");
      pipe.skipEdges.push_back({StageId(edge[0]), StageId(edge[1])});
    });
  }
  void readGaps() {
    list("gaps", [&] {
      pipe.gaps.push_back(StageId(number("gaps", 0, Program::maxStages)));
    });
  }
  void readSlices() {
    pipe.slices = number("slices", 1, Program::maxMicrobatches);
  }
  void readEdges();
  void readEdge() {
    std::array<int64_t, 2> ends;
    if (!numbers("edge", ends))
      return;
    if (ends[0] < 0 || ends[1] > int64_t(Program::maxStages) ||
        ends[0] >= ends[1])
      return wrong("edge", "two stages, the second beyond the first");
    edge.from = StageId(ends[0]);
    edge.to = StageId(ends[1]);
  }
  /// Follows from the tensors.
  void readShapes() {
    if (string("shapes") != "each")
      wrong("shapes", "\"each\"");
  }
  void readTensors();
  void readTensorName() {
    tensor.name = string("name");
    if (!isWord(tensor.name))
      wrong("name", "a word, the name of a tensor");
  }
  void readTensorType() {
    auto type = findElementType(string("type"));
    if (!type)
      return wrong("type", "one of " + llvm::join(elementTypeNames(), ", "));
    tensor.type = *type;
  }
  void readTensorDims() {
    list("dims", [&] {
      tensor.dims.push_back(number("dims", Tensor::varies, Tensor::maxDim));
    });
  }
  void readFiles() {
    list("files", [&] { program.files.push_back({string("files"), false}); });
  }
  void readSites();
  void readColumns() {
    size_t count = 0;
    bool good = true;
    list("columns", [&] {
      auto name = cursor.string();
      good &=
          name && count < std::size(columns) && *name == columns[count].name;
      ++count;
    });
    if (!good || count != std::size(columns))
      wrong("columns", "kind, pipe, stage, microbatch, peer, phase, group, "
                       "site");
  }
  void readActions() {
    list("actions", [&] {
      if (program.ranksBegun() == Program::maxRanks)
        return tooMany(Program::maxRanks, "ranks");
      program.beginRank();
      nextGroup = 0;
      group = -1;
      list("actions", [&] { readAction(); });
    });
    actionsPlace = lastPlace();
  }
  void readAction();
  void readWaits();
  void readLoops();
  void readPeakActivations() {
    list("peak_activations", [&] {
      if (peaks.size() == Program::maxRanks)
        return tooMany(Program::maxRanks, "ranks");
      peaks.push_back(number("peak_activations", 0, UINT32_MAX));
    });
    peaksPlace = lastPlace();
  }

  // The end.

  void finish() {
    if (program.ranksBegun() != program.numRanks)
      diags.report<diag::ImportJsonShape>(
          actionsPlace, "actions",
          fmt::format("a list of {} lists, one a rank", program.numRanks));
    size_t errorsBefore = diags.errorCount();
    resolveKinds();
    checkPipes();
    checkSites();
    checkPreconnect();
    checkLayout();
    if (diags.errorCount() != errorsBefore)
      return; // Rows that refer to them would only repeat it.
    if (!nodesText.empty())
      readNodes(nodesText, context.file, context.sources, diags, kinds,
                program);
    if (!costsText.empty())
      readCosts(costsText, context.file, context.sources, diags, program);
    numSites = program.sites.size();
    for (uint32_t row = 0; row != program.size() && !diags.saturated(); ++row)
      finishRow(ActionId(row), rowOffsets[row]);
    if (diags.errorCount() == errorsBefore)
      checkLoops();
    if (diags.errorCount() != errorsBefore)
      return;
    if (!program.loops.empty())
      program = unrolled(program);
    else if (hasWaits)
      checkWaits();
    if (peaksPlace)
      checkPeakActivations();
  }
  void checkPipes();
  void checkGaps(Pipe &pipe, SourceRange place);
  void checkTensors(Pipe &pipe, SourceRange place);
  void checkSites();
  void checkPreconnect();
  void checkLayout();
  void finishRow(ActionId id, uint32_t offset);
  void useOwnSite(Action &action, uint32_t offset);
  void checkLoops();
  void checkLoop(const Loop &loop, ActionId free, RankId rank,
                 SourceRange place);
  void checkWaits();
  void checkPeakActivations();
  void reportWait(ActionId receive, uint32_t given, uint32_t offset,
                  RankId rank, ActionId reader);
  SourceRange rowPlace(uint32_t offset) const {
    return range(text.slice(offset, text.find(']', offset) + 1));
  }

  ImportContext &context;
  Program program;

  // What is being put together.
  std::string letters, kindClass;
  KindInfo declared;
  struct NamedKind {
    KindId kind;                ///< That names it,
    std::optional<size_t> rule; ///< in this rule, else as what it restores.
    std::string name;
    SourceRange place;
  };
  std::vector<NamedKind> namedKinds;
  Pipe pipe;
  EdgeTensors edge;
  Tensor tensor;
  uint32_t nextGroup = 0;
  int64_t group = -1; ///< Of the row before.

  std::vector<KindId> kinds; ///< By the file's numbers.
  std::vector<SourceRange> pipePlaces, sitePlaces, pairPlaces;
  SourceRange layoutPlace;
  std::vector<uint32_t> rowOffsets; ///< Where each action begins.
  StringRef costsText, nodesText;
  SourceRange actionsPlace;
  size_t numSites = 0; ///< That the file has.
  /// The waits of each receive, where they stand, and how many each rank has.
  std::vector<uint32_t> waits, waitOffsets, waitsOfRank;
  SourceRange waitsPlace;
  bool hasWaits = false;
  std::vector<uint32_t> peaks; ///< Of activations, by rank.
  std::optional<SourceRange> peaksPlace;
  /// The loops with rows that count from the first of their rank, where they
  /// stand, and how many each rank has.
  std::vector<Loop> loops;
  std::vector<SourceRange> loopPlaces;
  std::vector<uint32_t> loopsOfRank;
  SourceRange loopsPlace;

  // The line of the last row that got a place of its own.
  std::optional<uint32_t> ownFile;
  uint32_t line = 1;
  size_t lineStart = 0, lineScanned = 0;
};

const Reader::Key Reader::topKeys[] = {
    {"format", &Reader::readFormat},
    {"version", &Reader::readVersion},
    {"compiler", &Reader::readCompiler, /*isOptional=*/true},
    {"schedule", &Reader::readSchedule},
    {"params", &Reader::readParams},
    {"ranks", &Reader::readRanks},
    {"backward", &Reader::readBackward},
    {"preconnect", &Reader::readPreconnect, /*isOptional=*/true},
    {"calls", &Reader::readCalls, /*isOptional=*/true},
    {"layout", &Reader::readLayout, /*isOptional=*/true},
    {"costs", &Reader::readCostsText, /*isOptional=*/true},
    {"kinds", &Reader::readKinds},
    {"nodes", &Reader::readNodesText, /*isOptional=*/true},
    {"phases", &Reader::readPhases},
    {"pipes", &Reader::readPipes},
    {"files", &Reader::readFiles},
    {"sites", &Reader::readSites},
    {"columns", &Reader::readColumns},
    {"actions", &Reader::readActions},
    {"loops", &Reader::readLoops, /*isOptional=*/true},
    {"waits", &Reader::readWaits, /*isOptional=*/true},
    {"peak_activations", &Reader::readPeakActivations, /*isOptional=*/true},
};
const Reader::Key Reader::kindKeys[] = {
    {"letters", &Reader::readLetters},
    {"class", &Reader::readClass},
    {"per", &Reader::readPer, /*isOptional=*/true},
    {"lane", &Reader::readLane, /*isOptional=*/true},
    {"after", &Reader::readAfter, /*isOptional=*/true},
    {"before", &Reader::readBefore, /*isOptional=*/true},
    {"required", &Reader::readRequired, /*isOptional=*/true},
    {"in_flight", &Reader::readInFlight, /*isOptional=*/true},
    {"restores", &Reader::readRestores, /*isOptional=*/true},
    {"collective", &Reader::readCollective, /*isOptional=*/true},
};
const Reader::Key Reader::pipeKeys[] = {
    {"name", &Reader::readPipeName},
    {"microbatches", &Reader::readPipeMicrobatches},
    {"rank_of_stage", &Reader::readRankOfStage},
    {"skip_edges", &Reader::readSkipEdges},
    {"gaps", &Reader::readGaps, /*isOptional=*/true},
    {"slices", &Reader::readSlices, /*isOptional=*/true},
    {"tensors", &Reader::readEdges, /*isOptional=*/true},
};
const Reader::Key Reader::edgeKeys[] = {
    {"edge", &Reader::readEdge},
    {"shapes", &Reader::readShapes, /*isOptional=*/true},
    {"carries", &Reader::readTensors},
};
const Reader::Key Reader::tensorKeys[] = {
    {"name", &Reader::readTensorName},
    {"type", &Reader::readTensorType},
    {"dims", &Reader::readTensorDims},
};
void Reader::readTop() {
  object("the program", topKeys);
  expectEnd();
}

void Reader::readLayout() {
  list("layout", [&] {
    std::string layers = string("layout");
    layoutPlace = lastPlace();
    if (!llvm::all_of(layers, llvm::isAlpha))
      wrong("layout", "a list of letters by stage");
    program.stageLayers.push_back(std::move(layers));
  });
}

void Reader::readPreconnect() {
  llvm::DenseSet<std::pair<int64_t, int64_t>> seen;
  list("preconnect", [&] {
    std::array<int64_t, 2> pair;
    if (!numbers("preconnect", pair))
      return;
    auto [low, high] = pair;
    if (low < 0 || low >= high || high >= int64_t(Program::maxRanks))
      return wrong("preconnect", "pairs of ranks, the smaller first");
    if (!seen.insert({low, high}).second)
      diags.report<diag::ImportJsonPair>(lastPlace(), low, high);
    program.preconnect.push_back({RankId(low), RankId(high)});
    pairPlaces.push_back(lastPlace());
  });
}

void Reader::readKinds() {
  list("kinds", [&] {
    letters.clear();
    kindClass.clear();
    declared = KindInfo();
    size_t errorsBefore = diags.errorCount();
    object("a kind", kindKeys);
    if (diags.errorCount() == errorsBefore && !cursor.failed())
      addKind();
  });
}

void Reader::readPipes() {
  list("pipes", [&] {
    pipe = Pipe();
    object("a pipe", pipeKeys);
    if (program.pipes.size() == Program::maxPipes)
      return tooMany(Program::maxPipes, "pipes");
    pipePlaces.push_back(lastPlace());
    program.pipes.push_back(std::move(pipe));
  });
}

void Reader::readEdges() {
  list("tensors", [&] {
    edge = EdgeTensors();
    object("an edge", edgeKeys);
    pipe.tensors.push_back(std::move(edge));
  });
}

void Reader::readTensors() {
  list("carries", [&] {
    tensor = Tensor();
    object("a tensor", tensorKeys);
    edge.tensors.push_back(std::move(tensor));
  });
}

void Reader::readParams() {
  bool isObject = cursor.peek() == '{';
  cursor.object([&](StringRef name) {
    std::string key = name.str();
    if (cursor.peek() == '"') {
      program.params.push_back({std::move(key), "text", string("params")});
      return;
    }
    auto value = cursor.scalar();
    if (!value || *value == "null")
      return wrong("params", "an object of numbers, booleans and strings");
    StringRef type = *value == "true" || *value == "false"            ? "bool"
                     : value->find_first_of(".eE") == StringRef::npos ? "int"
                                                                      : "float";
    program.params.push_back({std::move(key), type.str(), value->str()});
  });
  if (!isObject)
    wrong("params", "an object");
}

void Reader::readCollective() {
  constexpr StringRef what =
      "\"all\", \"replicas\", \"outside NAME\" or a list of stages";
  if (cursor.peek() == '[') {
    declared.meeting = Meeting::Stages;
    int64_t most = Program::maxStages;
    list("collective",
         [&] { declared.stages.push_back(number("collective", -most, most)); });
    return;
  }
  std::string text = string("collective");
  StringRef name = text;
  bool isOutside = name.consume_front("outside ");
  if (isOutside && isWord(name)) {
    declared.meeting = Meeting::Outside;
    declared.outside = name.str();
  } else if (!isOutside && (name == "all" || name == "replicas")) {
    declared.meeting = name == "all" ? Meeting::All : Meeting::Replicas;
  } else {
    wrong("collective", what);
  }
}

void Reader::declareKind() {
  bool isName = !letters.empty() && llvm::all_of(letters, [](char c) {
    return llvm::isAlpha(c) || c == '_';
  });
  if (!isName)
    return wrong("letters", "letters and underscores");
  if (program.kinds.find(letters))
    return wrong("kinds",
                 fmt::format("told apart: `{}` is there twice", letters));
  if (program.kinds.size() == KindTable::maxKinds)
    return tooMany(KindTable::maxKinds, "kinds of actions");
  if (!declared.canMeet()) {
    diags.report<diag::BadCollective>(lastPlace(),
                                      kindScopeNames()[size_t(declared.scope)],
                                      meetingName(declared.meeting));
    return;
  }
  declared.letters = letters;
  declared.kindClass = KindClass::Declared;
  kinds.push_back(program.kinds.declare(declared));
}

/// Kinds may name those that come behind them.
void Reader::resolveKinds() {
  for (const NamedKind &named : namedKinds) {
    auto kind = program.kinds.find(named.name);
    KindInfo &info = program.kinds.declared(named.kind);
    if (!kind)
      diags.report<diag::UnknownKind>(named.place, named.name, "");
    else if (named.rule)
      info.rules[*named.rule].kinds.push_back(*kind);
    else
      info.restores = *kind;
  }
}

void Reader::addKind() {
  if (kindClass == kindClassName(KindClass::Declared))
    return declareKind();
  auto id = program.kinds.find(letters);
  if (!id || kindClassName(program.kinds[*id].kindClass) != kindClass) {
    std::string known;
    const KindTable builtIn;
    for (const KindInfo &info : builtIn.rows())
      known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", info.letters,
                           kindClassName(info.kindClass));
    return wrong("kinds", "among " + known);
  }
  kinds.push_back(*id);
}

void Reader::readSites() {
  list("sites", [&] {
    std::array<int64_t, 4> site;
    if (!numbers("sites", site))
      return;
    bool isFirst = program.sites.empty();
    bool isUnknown = site == std::array<int64_t, 4>{-1, 0, 0, 0};
    bool fits = llvm::all_of(
        site, [](int64_t n) { return n >= 0 && n < int64_t(UINT32_MAX); });
    if (isFirst ? !isUnknown : !fits)
      wrong("sites", "[-1,0,0,0], and then file, line, column, caller");
    Site entry;
    if (!isFirst)
      entry = {uint32_t(site[0]), uint32_t(site[1]), uint32_t(site[2]),
               SiteId(site[3])};
    program.sites.push_back(entry);
    sitePlaces.push_back(lastPlace());
  });
  if (program.sites.empty())
    wrong("sites", "a list that begins with [-1,0,0,0]");
}

/// Enters a row with the file's own numbers for its kind.
void Reader::readAction() {
  std::array<int64_t, std::size(columns)> row;
  if (!numbers("actions", row))
    return;
  for (auto [value, column] : llvm::zip(row, columns))
    if (value < column.least || value > column.most)
      return wrong(column.name,
                   fmt::format("from {} to {}", column.least, column.most));
  if (program.size() >= context.options.maxActions)
    return tooMany(context.options.maxActions, "actions");
  bool joins = row[GroupColumn] >= 0 && row[GroupColumn] == group;
  if (row[GroupColumn] >= 0 && !joins && row[GroupColumn] != nextGroup++) {
    diags.report<diag::ImportJsonGroup>(lastPlace(), row[GroupColumn],
                                        nextGroup - 1);
    nextGroup = row[GroupColumn] + 1;
  }
  group = row[GroupColumn];
  Action action;
  action.kind = KindId(row[KindColumn]);
  action.pipe = PipeId(row[PipeColumn]);
  action.stage = StageId(row[StageColumn]);
  action.microbatch =
      row[MicrobatchColumn] < 0 ? Action::noMicrobatch : row[MicrobatchColumn];
  if (row[PeerColumn] >= 0)
    action.peer = StageId(row[PeerColumn]);
  action.phase = PhaseId(row[PhaseColumn]);
  action.site = SiteId(row[SiteColumn]);
  action.joined = joins;
  program.append(action);
  rowOffsets.push_back(cursor.last().begin() - text.begin());
}

void Reader::readWaits() {
  hasWaits = true;
  list("waits", [&] {
    if (waitsOfRank.size() == Program::maxRanks)
      return tooMany(Program::maxRanks, "ranks");
    waitsOfRank.push_back(0);
    list("waits", [&] {
      if (waits.size() >= context.options.maxActions)
        return tooMany(context.options.maxActions, "waits");
      waits.push_back(number("waits", 0, UINT32_MAX - 1));
      waitOffsets.push_back(cursor.last().begin() - text.begin());
      ++waitsOfRank.back();
    });
  });
  waitsPlace = lastPlace();
}

void Reader::checkPipes() {
  for (auto [i, pipe] : llvm::enumerate(program.pipes)) {
    SourceRange place = pipePlaces[i];
    for (RankId rank : pipe.rankOfStage)
      if (rank.value >= program.numRanks) {
        diags.report<diag::ImportJsonRange>(
            place, "rank", rank.value,
            fmt::format("the program has {}", program.numRanks));
        break;
      }
    for (auto [from, to] : pipe.skipEdges)
      if (to.value >= pipe.numStages()) {
        diags.report<diag::ImportJsonRange>(
            place, "stage", to.value,
            fmt::format("pipe `{}` has {}", pipe.name, pipe.numStages()));
        break;
      }
    llvm::sort(pipe.skipEdges);
    pipe.skipEdges.erase(
        std::unique(pipe.skipEdges.begin(), pipe.skipEdges.end()),
        pipe.skipEdges.end());
    checkGaps(pipe, place);
    checkTensors(pipe, place);
    if (pipe.numMicrobatches % pipe.slices != 0)
      diags.report<diag::SlicesUneven>(place, pipe.numMicrobatches,
                                       pipe.slices);
    for (const Pipe &other : llvm::ArrayRef(program.pipes).take_front(i)) {
      uint32_t shared = std::max(pipe.firstMicrobatch, other.firstMicrobatch);
      if (pipe.hasMicrobatch(shared) && other.hasMicrobatch(shared))
        diags.report<diag::ImportJsonConflict>(
            place, other.name, pipe.name, fmt::format("microbatch {}", shared));
      if (pipe.name == other.name)
        diags.report<diag::ImportJsonConflict>(place, other.name, pipe.name,
                                               "their name");
    }
  }
}

void Reader::checkGaps(Pipe &pipe, SourceRange place) {
  llvm::sort(pipe.gaps);
  pipe.gaps.erase(std::unique(pipe.gaps.begin(), pipe.gaps.end()),
                  pipe.gaps.end());
  if (!pipe.gaps.empty() && pipe.gaps.back().value + 1 >= pipe.numStages())
    diags.report<diag::NoSuchNeighbours>(place, pipe.numStages(),
                                         pipe.gaps.back().value,
                                         pipe.gaps.back().value + 1);
}

void Reader::checkTensors(Pipe &pipe, SourceRange place) {
  llvm::sort(pipe.tensors, [](const EdgeTensors &a, const EdgeTensors &b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  const EdgeTensors *before = nullptr;
  for (const EdgeTensors &edge : pipe.tensors) {
    if (diags.saturated())
      return;
    std::string name =
        fmt::format("the edge {} -> {}", edge.from.value, edge.to.value);
    if (!pipe.hasEdge(edge.from, edge.to))
      diags.report<diag::ImportNoEdge>(place, pipe.name, name);
    if (before && before->from == edge.from && before->to == edge.to)
      diags.report<diag::ImportJsonTwice>(place, name);
    before = &edge;
  }
}

void Reader::checkSites() {
  for (size_t i = 1; i < program.sites.size() && !diags.saturated(); ++i) {
    const Site &site = program.sites[i];
    if (site.file >= program.files.size())
      diags.report<diag::ImportJsonRange>(
          sitePlaces[i], "file", site.file,
          fmt::format("`files` has {}", program.files.size()));
    if (site.caller.value >= program.sites.size())
      diags.report<diag::ImportJsonRange>(
          sitePlaces[i], "site", site.caller.value,
          fmt::format("`sites` has {}", program.sites.size()));
  }
}

void Reader::checkLayout() {
  for (const Pipe &pipe : program.pipes)
    if (!program.stageLayers.empty() &&
        program.stageLayers.size() != pipe.numStages())
      diags.report<diag::CostCount>(
          layoutPlace, "layout", program.stageLayers.size(),
          fmt::format("{} stages in `{}`", pipe.numStages(), pipe.name));
}

void Reader::checkPreconnect() {
  for (auto [pair, place] : llvm::zip(program.preconnect, pairPlaces))
    if (pair.high.value >= program.numRanks && !diags.saturated())
      diags.report<diag::ImportJsonRange>(
          place, "rank", pair.high.value,
          fmt::format("the program has {}", program.numRanks));
}

/// Puts the program's kind in the place of the file's, and checks the numbers
/// of a row against what they count.
void Reader::finishRow(ActionId id, uint32_t offset) {
  Action action = program[id];
  auto check = [&](StringRef what, uint64_t number, size_t size,
                   StringRef whole) {
    if (number < size)
      return true;
    diags.report<diag::ImportJsonRange>(rowPlace(offset), what, number,
                                        fmt::format("{} has {}", whole, size));
    return false;
  };
  if (!check("kind", action.kind.value, kinds.size(), "`kinds`") ||
      !check("pipe", action.pipe.value, program.pipes.size(), "`pipes`") ||
      !check("phase", action.phase.value, program.phases.size(), "`phases`") ||
      !check("site", action.site.value, numSites, "`sites`"))
    return;
  const Pipe &pipe = program.pipes[action.pipe.value];
  if (!check("stage", action.stage.value, pipe.numStages(), "its pipe"))
    return;
  action.kind = kinds[action.kind.value];
  bool isMessage = !program.kinds[action.kind].isCompute();
  if (isMessage != action.hasPeer())
    diags.report<diag::ImportJsonShape>(rowPlace(offset), "peer",
                                        isMessage
                                            ? "a stage for a send or receive"
                                            : "-1 for a compute action");
  else if (isMessage)
    check("stage", action.peer.value, pipe.numStages(), "its pipe");
  const KindInfo &info = program.kinds[action.kind];
  if (info.scope != KindScope::Microbatch) {
    if (action.hasMicrobatch())
      diags.report<diag::ImportJsonShape>(
          rowPlace(offset), "microbatch",
          "-1 for an action that is not of a microbatch");
    auto first = program.firstStageOf(program.rankOf(id));
    if (info.scope == KindScope::Rank && !first)
      diags.report<diag::NoChunk>(rowPlace(offset), program.rankOf(id).value,
                                  "");
    else if (info.scope == KindScope::Rank)
      std::tie(action.pipe, action.stage) = *first;
  } else if (!pipe.hasMicrobatch(action.microbatch))
    diags.report<diag::ImportJsonRange>(
        rowPlace(offset), "microbatch", action.microbatch,
        fmt::format("its pipe has {} to, not including, {}",
                    pipe.firstMicrobatch, pipe.endMicrobatch()));
  if (action.site == SiteId())
    useOwnSite(action, offset);
  program.set(id, action);
}

void Reader::readLoops() {
  list("loops", [&] {
    if (loopsOfRank.size() == Program::maxRanks)
      return tooMany(Program::maxRanks, "ranks");
    loopsOfRank.push_back(0);
    list("loops", [&] {
      if (loops.size() >= context.options.maxActions)
        return tooMany(context.options.maxActions, "loops");
      std::array<int64_t, 4> values;
      if (!numbers("loops", values))
        return;
      auto [begin, rows, count, advance] = values;
      constexpr int64_t most = UINT32_MAX / 4;
      if (begin < 0 || begin > most || rows < 1 || rows > most || count < 1 ||
          count > most || std::abs(advance) > INT32_MAX)
        return wrong("loops", "the first action, a number of actions, a number "
                              "of turns, and what a turn adds to microbatches");
      loops.push_back({ActionId(begin), ActionId(begin + rows),
                       static_cast<uint32_t>(count),
                       static_cast<int32_t>(advance)});
      loopPlaces.push_back(lastPlace());
      ++loopsOfRank.back();
    });
  });
  loopsPlace = lastPlace();
}

/// Checks the loops, and hands those of a good program to it.
void Reader::checkLoops() {
  if (!loopsOfRank.empty() && loopsOfRank.size() != program.ranksBegun()) {
    diags.report<diag::ImportJsonShape>(loopsPlace, "loops",
                                        "a list for each rank");
    return;
  }
  if (!loops.empty() && hasWaits) {
    diags.report<diag::ImportJsonShape>(
        waitsPlace, "waits",
        "absent where there are loops: its positions are "
        "those of actions written out");
    return;
  }
  size_t next = 0;
  for (uint32_t i = 0; i != loopsOfRank.size(); ++i) {
    RankId rank(i);
    ActionId free = program.begin(rank);
    for (uint32_t left = loopsOfRank[i]; left != 0; --left, ++next) {
      Loop loop = loops[next];
      loop.begin.value += program.begin(rank).value;
      loop.end.value += program.begin(rank).value;
      checkLoop(loop, free, rank, loopPlaces[next]);
      if (diags.hasErrors())
        return;
      program.loops.push_back(loop);
      free = loop.end;
    }
  }
  if (flatSize(program) > context.options.maxActions)
    diags.report<diag::ImportTooMany>(loopsPlace, context.options.maxActions,
                                      "actions");
}

void Reader::checkLoop(const Loop &loop, ActionId free, RankId rank,
                       SourceRange place) {
  auto splitsGroup = [&](ActionId row) {
    return row != program.end(rank) && program.joined(row);
  };
  if (loop.begin < free || loop.end > program.end(rank) ||
      splitsGroup(loop.begin) || splitsGroup(loop.end)) {
    diags.report<diag::ImportJsonShape>(
        place, "loops",
        "in the order of the actions, apart from each other, within the rank's "
        "list, and not across a group");
    return;
  }
  for (ActionId row = loop.begin; row != loop.end; ++row.value) {
    Action action = program[row];
    const Pipe &pipe = program.pipes[action.pipe.value];
    int64_t last = action.microbatch + int64_t(loop.count - 1) * loop.advance;
    if (!action.hasMicrobatch())
      continue;
    if (last >= pipe.firstMicrobatch && last < pipe.endMicrobatch())
      continue;
    diags.report<diag::IrLoopTooLong>(place, loop.count, last, pipe.name);
    return;
  }
}

/// Checks that each receive waits where its data is read first.
void Reader::checkWaits() {
  std::vector<uint32_t> receives(program.ranksBegun());
  for (uint32_t rank = 0; rank != receives.size(); ++rank)
    for (uint32_t row = program.begin(RankId(rank)).value;
         row != program.end(RankId(rank)).value; ++row)
      receives[rank] +=
          program.kindOf(ActionId(row)).kindClass == KindClass::Recv;
  if (receives != waitsOfRank) {
    diags.report<diag::ImportJsonShape>(
        waitsPlace, "waits",
        "a list for each rank, with a number for each of its receives");
    return;
  }
  ProgramIndex index(program);
  ReceiveBuffers buffers(program, index);
  if (!buffers.edges().fits())
    return; // It has far too few actions, as `verify` will say.
  size_t next = 0;
  for (uint32_t i = 0; i != program.ranksBegun(); ++i) {
    RankId rank(i);
    uint32_t begin = program.begin(rank).value, end = program.end(rank).value;
    for (uint32_t row = begin; row != end && !diags.saturated(); ++row) {
      if (program.kindOf(ActionId(row)).kindClass != KindClass::Recv)
        continue;
      ActionId reader = buffers.waits()[next];
      if (waits[next] != reader.value - begin)
        reportWait(ActionId(row), waits[next], waitOffsets[next], rank, reader);
      ++next;
    }
  }
}

/// Checks that each number is what the list of its rank amounts to.
void Reader::checkPeakActivations() {
  std::vector<uint32_t> truth;
  for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank)
    truth.push_back(peakActivations(program, RankId(rank)));
  if (peaks == truth)
    return;
  std::string what =
      fmt::format("a list of {} numbers, one a rank", program.numRanks);
  if (peaks.size() == truth.size()) {
    size_t rank =
        std::mismatch(peaks.begin(), peaks.end(), truth.begin()).first -
        peaks.begin();
    what = fmt::format("{} for rank {}, whose list has that many activations "
                       "at one time",
                       truth[rank], rank);
  }
  diags.report<diag::ImportJsonShape>(*peaksPlace, "peak_activations", what);
}

void Reader::reportWait(ActionId receive, uint32_t given, uint32_t offset,
                        RankId rank, ActionId reader) {
  uint32_t truth = reader.value - program.begin(rank).value;
  std::string why =
      reader == program.end(rank)
          ? fmt::format("no action reads it, so it waits at the end, {}", truth)
          : fmt::format("it is read first at {}, `{}`", truth,
                        cell(program, program[reader]));
  StringRef digits = text.substr(offset, 20).take_while([](char c) {
    return c >= '0' && c <= '9';
  });
  diags.report<diag::ImportJsonWait>(
      range(digits), cell(program, program[receive]), given, why);
}

/// Gives an action of unknown origin its place in the JSON.
void Reader::useOwnSite(Action &action, uint32_t offset) {
  if (!ownFile) {
    ownFile = program.files.size();
    program.files.push_back({context.sources.name(context.file).str(), true});
  }
  for (; lineScanned < offset; ++lineScanned)
    if (text[lineScanned] == '\n') {
      ++line;
      lineStart = lineScanned + 1;
    }
  program.sites.push_back(
      {*ownFile, line, static_cast<uint32_t>(offset - lineStart + 1), {}});
  action.site = SiteId(program.sites.size() - 1);
}

} // namespace

bool ppcc::beginsJson(StringRef text) { return text.starts_with("{"); }

std::optional<Program> ppcc::importJson(ImportContext &context) {
  return Reader(context).read();
}
