// Reads the head of a program from JSON, key by key.
#pragma once

#include "Importers.h"
#include "JsonKinds.h"
#include "JsonNodes.h"
#include "JsonPipes.h"
#include "ppcc/IR/Calls.h"

namespace ppcc {

/// Builds the head part by part, each when those that it refers to are there:
/// a function for each key of Head.def that is not about rows.
class JsonHead {
protected:
  /// `text` is that of the context's file, or the part of it from the head on.
  JsonHead(ImportContext &context, StringRef text)
      : context(context), diags(context.diags), head(program.editHead()),
        json(text, context.file, context.sources, context.diags),
        kinds(json, head), pipes(json, head) {
    head.sites.clear();
    head.phases.clear();
  }

  explicit JsonHead(ImportContext &context)
      : JsonHead(context, withoutMark(context.sources.text(context.file))) {}

  void readCompiler(StringRef key) { json.string(key); }
  void readSchedule(StringRef key) { head.name = json.string(key); }
  void readRanks(StringRef key) {
    head.numRanks = json.number(key, 1, Program::maxRanks);
  }
  void readBackward(StringRef key) {
    head.hasBackward = json.boolean(key, /*otherwise=*/true);
  }
  void readProven(StringRef key) { // Proofs are made.
    json.list(key, [&] { context.transports.push_back(json.string(key)); });
  }
  void readKinds(StringRef key) {
    json.list(key, [&] { kinds.read(); });
    if (json.isGood())
      kinds.resolve();
  }
  void readPipes(StringRef key) {
    json.list(key, [&] { pipes.read(); });
  }
  void readFiles(StringRef key) {
    json.list(key, [&] { head.files.push_back({json.string(key), false}); });
  }
  void readNodes(StringRef) {
    if (isGood())
      JsonNodes(json, kinds.numbers(), head).read();
  }
  void readCosts(StringRef key) {
    bool isObject = json.peek() == '{';
    json.skip();
    if (!isObject)
      json.wrong(key, "an object");
    if (isGood())
      ppcc::readCosts(json.last(), context.file, context.sources, diags, head);
  }
  /// Stops where something is wrong: what refers to it would only repeat that.
  bool isGood() {
    if (!json.isGood())
      json.stop();
    return json.isGood();
  }

  void readFormat(StringRef key) {
    if (json.string() != "ppcc.program")
      json.wrong(key, "\"ppcc.program\"");
  }

  void readVersion(StringRef key) {
    auto version = json.integer();
    if ((!version || *version < formatVersion || *version > gapsVersion) &&
        json.isReading())
      diags.report<diag::ImportJsonVersion>(
          json.lastPlace(), quote(json.last()), "1, 2", gapsVersion);
  }

  void readParams(StringRef key) {
    json.object(key, [&](StringRef name) { readParam(key, name); });
  }

  /// Takes the value of a parameter.
  void readParam(StringRef key, StringRef name) {
    ProgramParam param{name.str(), "text", ""};
    if (json.peek() == '"') {
      param.value = json.string(key);
      return head.params.push_back(std::move(param));
    }
    auto value = json.scalar();
    if (!value || *value == "null")
      return json.wrong(key, "an object of numbers, booleans and strings");
    param.type = *value == "true" || *value == "false"            ? "bool"
                 : value->find_first_of(".eE") == StringRef::npos ? "int"
                                                                  : "float";
    param.value = value->str();
    head.params.push_back(std::move(param));
  }

  void readPreconnect(StringRef key) {
    context.listsConnections = true;
    DenseSet<std::pair<int64_t, int64_t>> pairs;
    json.list(key, [&] {
      auto pair = json.numbers<2>(key);
      if (!pair)
        return;
      auto [low, high] = *pair;
      if (low < 0 || low >= high || high >= int64_t(Program::maxRanks))
        return json.wrong(key, "pairs of ranks, the smaller first");
      if (!pairs.insert({low, high}).second)
        diags.report<diag::ImportJsonPair>(json.lastPlace(), low, high);
      if (high >= head.numRanks && json.isGood())
        diags.report<diag::ImportJsonRange>(
            json.lastPlace(), "rank", high,
            fmt::format("the program has {}", head.numRanks));
      preconnect.push_back({RankId(low), RankId(high)});
    });
  }

  void readCalls(StringRef key) {
    head.calls = json.word(key, findCallStyle,
                           "one of " + llvm::join(callStyleNames(), ", "))
                     .value_or(CallStyle::None);
  }

  void readLayout(StringRef key) {
    SourceRange at;
    json.list(key, [&] {
      std::string layers = json.string(key);
      at = json.lastPlace();
      if (!llvm::all_of(layers, llvm::isAlpha))
        json.wrong(key, "a list of letters by stage");
      head.stageLayers.push_back(std::move(layers));
    });
    if (json.isGood())
      checkLayout(head, at, diags);
  }

  void readUnits(StringRef key) {
    json.list(key, [&] {
      std::string word = json.string(key);
      if (!llvm::is_contained(Units::allWords(), word) ||
          !head.units.take(word))
        json.wrong(key, "a list of one of s, ms, us, and of bytes");
    });
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
    std::vector<SourceRange> places;
    json.list(key, [&] {
      auto site = json.numbers<4>(key);
      if (!site)
        return;
      bool isFirst = head.sites.empty();
      bool isUnknown = *site == std::array<int64_t, 4>{-1, 0, 0, 0};
      bool fits = llvm::all_of(
          *site, [](int64_t n) { return n >= 0 && n < int64_t(UINT32_MAX); });
      if (isFirst ? !isUnknown : !fits)
        json.wrong(key, "[-1,0,0,0], and then file, line, column, caller");
      auto [file, line, column, caller] = *site;
      head.sites.push_back(isFirst ? Site()
                                   : Site{uint32_t(file), uint32_t(line),
                                          uint32_t(column), SiteId(caller)});
      places.push_back(json.lastPlace());
    });
    if (head.sites.empty())
      json.wrong(key, "a list that begins with [-1,0,0,0]");
    if (json.isGood())
      checkSites(places);
  }

  /// A site may be called from one that stands after it.
  void checkSites(ArrayRef<SourceRange> places) {
    for (auto [site, place] : llvm::drop_begin(llvm::zip(head.sites, places))) {
      if (diags.saturated())
        return;
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

  ImportContext &context;
  DiagnosticEngine &diags;
  Program program;
  Head &head;
  JsonReader json;
  JsonKinds kinds;
  JsonPipes pipes;
  std::vector<RankPair> preconnect;

private:
  /// Versions that are read: of programs; of those with loops, which readers
  /// that know none would run wrongly; of those with stages that have no edge
  /// to the next, perhaps with loops.
  static constexpr int64_t formatVersion = 1, gapsVersion = 3;
};

} // namespace ppcc
