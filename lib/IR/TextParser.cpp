// Reads a program from text.
#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Text.h"
#include "ppcc/IR/Transport.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <array>
#include <map>

using namespace ppcc;
using llvm::StringRef;

namespace {

class Parser {
public:
  Parser(uint32_t file, const SourceManager &sources, DiagnosticEngine &diags)
      : sources(sources), diags(diags), file(file), text(sources.text(file)),
        cursor(text.begin()), end(text.end()), lineStart(cursor) {
    kindOfLetter.fill(noKind);
    for (auto [i, info] : llvm::enumerate(program.kinds.rows()))
      if (info.letters.size() == 1)
        kindOfLetter[static_cast<unsigned char>(info.letters[0])] =
            static_cast<uint16_t>(i);
  }

  std::optional<Program> parse() {
    size_t errorsBefore = diags.errorCount();
    parseHead();
    // A cell takes three bytes and a space at least; four is near enough to the
    // usual.
    program.reserve(std::min<size_t>((end - cursor) / 4, UINT32_MAX));
    while (!diags.saturated() && !atEnd())
      parseRank();
    while (program.ranksBegun() < program.numRanks)
      program.beginRank();
    if (diags.errorCount() != errorsBefore)
      return std::nullopt;
    return std::move(program);
  }

private:
  // Characters and tokens.

  SourceRange range(const char *from, const char *to) const {
    return {sources.loc(file, from - text.begin()),
            sources.loc(file, to - text.begin())};
  }
  SourceRange here() const {
    return range(cursor, cursor == end ? cursor : cursor + 1);
  }

  void skipSpace() {
    for (; cursor != end; ++cursor) {
      if (*cursor == '\n') {
        ++line;
        lineStart = cursor + 1;
      } else if (*cursor == '/' && cursor + 1 != end && cursor[1] == '/') {
        while (cursor + 1 != end && cursor[1] != '\n')
          ++cursor;
      } else if (!isSpace(*cursor)) {
        return;
      }
    }
  }
  static bool isSpace(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
  }
  static bool isWordChar(char c) {
    return llvm::isAlnum(c) || c == '_' || c == '.' || c == '+' || c == '-';
  }

  bool atEnd() {
    skipSpace();
    return cursor == end;
  }
  bool peek(char c) {
    skipSpace();
    return cursor != end && *cursor == c;
  }
  bool accept(StringRef token) {
    skipSpace();
    if (!StringRef(cursor, end - cursor).starts_with(token))
      return false;
    cursor += token.size();
    return true;
  }
  bool expect(StringRef token) {
    if (accept(token))
      return true;
    diags.report<diag::IrExpected>(here(), fmt::format("`{}`", token));
    return false;
  }
  StringRef peekWord() {
    skipSpace();
    const char *to = cursor;
    while (to != end && isWordChar(*to))
      ++to;
    return StringRef(cursor, to - cursor);
  }
  bool acceptWord(StringRef word) {
    if (peekWord() != word)
      return false;
    cursor += word.size();
    return true;
  }
  bool expectWord(StringRef word) {
    if (acceptWord(word))
      return true;
    diags.report<diag::IrExpected>(here(), fmt::format("`{}`", word));
    return false;
  }

  /// The digits at the cursor, as a number of at most `max`. Nothing, and a
  /// report, for anything else.
  std::optional<uint32_t> number(StringRef what, uint32_t max) {
    skipSpace();
    return digits(what, max);
  }
  std::optional<uint32_t> digits(StringRef what, uint32_t max) {
    const char *from = cursor;
    uint64_t value = 0;
    bool fits = true;
    for (; cursor != end && llvm::isDigit(*cursor); ++cursor) {
      value = value * 10 + (*cursor - '0');
      if (value > max) {
        fits = false;
        value = max;
      }
    }
    if (cursor == from) {
      diags.report<diag::IrExpected>(here(), fmt::format("a number: {}", what));
      return std::nullopt;
    }
    if (!fits) {
      diags.report<diag::IrNumberTooLarge>(
          range(from, cursor),
          StringRef(from, std::min<size_t>(cursor - from, 40)), what, max);
      return std::nullopt;
    }
    return static_cast<uint32_t>(value);
  }

  std::optional<std::string> string(StringRef what) {
    if (!peek('"')) {
      diags.report<diag::IrExpected>(here(), fmt::format("a string: {}", what));
      return std::nullopt;
    }
    const char *from = cursor++;
    std::string value;
    for (; cursor != end && *cursor != '\n'; ++cursor) {
      char c = *cursor;
      if (c == '"') {
        ++cursor;
        return value;
      }
      if (c == '\\' && cursor + 1 != end && cursor[1] != '\n') {
        c = *++cursor;
        if (c == 'n')
          c = '\n';
        else if (c == 't')
          c = '\t';
        else if (c != '"' && c != '\\')
          diags.report<diag::BadEscape>(range(cursor - 1, cursor + 1),
                                        StringRef(cursor, 1));
      }
      value += c;
    }
    diags.report<diag::UnterminatedString>(range(from, cursor));
    return std::nullopt;
  }
  std::optional<std::string> wordOrString(StringRef what) {
    if (peek('"'))
      return string(what);
    StringRef word = peekWord();
    if (word.empty()) {
      diags.report<diag::IrExpected>(here(), what);
      return std::nullopt;
    }
    cursor += word.size();
    return word.str();
  }

  /// Moves to the end of the line of the key that was read last, if it is not
  /// behind that already.
  void skipItem() {
    while (line == keyLine && cursor != end && *cursor != '\n' &&
           *cursor != '}')
      ++cursor;
  }

  // The head: everything but the actions.

  void parseHead() {
    if (!expectWord("program")) {
      cursor = end;
      return;
    }
    if (peek('"'))
      if (auto name = string("the program's name"))
        program.name = std::move(*name);
    if (!expect("{")) {
      cursor = end;
      return;
    }
    bool closed = false;
    while (!diags.saturated() && !(closed = accept("}")) && !atEnd())
      if (!parseItem())
        skipItem();
    if (!closed && !diags.saturated())
      diags.report<diag::IrExpected>(here(), "`}`, the end of `program`");
    checkSites();
    checkPatterns();
    resolveKinds();
    for (Pipe &pipe : program.pipes) {
      llvm::sort(pipe.skipEdges);
      pipe.skipEdges.erase(
          std::unique(pipe.skipEdges.begin(), pipe.skipEdges.end()),
          pipe.skipEdges.end());
      llvm::sort(pipe.gaps);
      pipe.gaps.erase(std::unique(pipe.gaps.begin(), pipe.gaps.end()),
                      pipe.gaps.end());
    }
    checkTensors();
    checkScales();
    checkRanks();
  }

  bool parseItem() {
    struct Key {
      StringRef name;
      bool (Parser::*parse)();
    };
    static constexpr Key keys[] = {
        {"param", &Parser::parseParam},
        {"ranks", &Parser::parseRanks},
        {"backward", &Parser::parseBackward},
        {"file", &Parser::parseFile},
        {"site", &Parser::parseSite},
        {"pipe", &Parser::parsePipe},
        {"skip", &Parser::parseSkip},
        {"gap", &Parser::parseGap},
        {"carry", &Parser::parseCarry},
        {"scale", &Parser::parseScale},
        {"layout", &Parser::parseLayers},
        {"cost", &Parser::parseCost},
        {"group", &Parser::parseGroupRule},
        {"latency", &Parser::parseLatency},
        {"bandwidth", &Parser::parseBandwidth},
        {"bytes", &Parser::parseBytes},
        {"memory", &Parser::parseMemory},
        {"proven", &Parser::parseProven},
        {"preconnect", &Parser::parsePreconnect},
        {"calls", &Parser::parseCalls},
        {"graph", &Parser::parseGraph},
        {"graphs", &Parser::parseGraphUse},
        {"pattern", &Parser::parsePattern},
        {"action", &Parser::parseKind},
    };
    StringRef word = peekWord();
    keyLine = line;
    if (word.empty()) {
      diags.report<diag::IrExpected>(here(), "a key, such as `pipe`");
      ++cursor;
      return false;
    }
    keyRange = range(word.begin(), word.end());
    cursor += word.size();
    for (const Key &key : keys)
      if (key.name == word)
        return (this->*key.parse)();
    StringRef names[std::size(keys)];
    llvm::transform(keys, names, [](const Key &key) { return key.name; });
    diags.report<diag::IrUnknownKey>(keyRange, word, didYouMean(word, names));
    return false;
  }

  // Declared actions.

  bool parseKind() {
    SourceRange at;
    StringRef name = subject(at);
    bool isName = !name.empty() && llvm::all_of(name, [](char c) {
      return llvm::isAlpha(c) || c == '_';
    });
    if (!isName || name == "phase" || name == "loop" || name == "rank") {
      diags.report<diag::BadActionName>(at, name.take_front(40));
      return false;
    }
    if (program.kinds.find(name)) {
      diags.report<diag::IrTwice>(at, fmt::format("`{}`", name));
      return false;
    }
    if (program.kinds.size() == KindTable::maxKinds) {
      diags.report<diag::TooManyKinds>(at, KindTable::maxKinds);
      return false;
    }
    KindInfo info;
    info.letters = name.str();
    info.kindClass = KindClass::Declared;
    KindId kind(program.kinds.size());
    while (line == keyLine) {
      if (acceptWord("per")) {
        if (!parseScope(info.scope))
          return false;
      } else if (acceptWord("lane")) {
        if (!parseLane(info.lane))
          return false;
      } else if (peekWord() == "after" || peekWord() == "before") {
        if (!parseKindRule(kind, info))
          return false;
      } else if (acceptWord("required")) {
        info.isRequired = true;
      } else if (acceptWord("restores")) {
        StringRef restored = subject(at);
        pendingKinds.push_back({kind, std::nullopt, restored, at});
      } else if (acceptWord("in_flight")) {
        auto most = number("a number of actions", UINT32_MAX);
        if (!most)
          return false;
        info.inFlight = *most;
      } else if (acceptWord("meets")) {
        if (!parseMeeting(info))
          return false;
      } else {
        break;
      }
      skipSpace();
    }
    if (!info.canMeet()) {
      diags.report<diag::BadCollective>(keyRange,
                                        kindScopeNames()[size_t(info.scope)],
                                        meetingName(info.meeting));
      return false;
    }
    if (name.size() == 1)
      kindOfLetter[static_cast<unsigned char>(name[0])] =
          static_cast<uint16_t>(kind.value);
    program.kinds.declare(std::move(info));
    return true;
  }

  bool parseScope(KindScope &scope) {
    auto found = llvm::find(kindScopeNames(), peekWord());
    if (found == kindScopeNames().end()) {
      diags.report<diag::IrExpected>(here(), "`microbatch`, `stage` or `rank`");
      return false;
    }
    cursor += found->size();
    scope = static_cast<KindScope>(found - kindScopeNames().begin());
    return true;
  }

  bool parseLane(uint8_t &lane) {
    SourceRange at;
    StringRef name = subject(at);
    auto known = name.empty() ? std::nullopt : program.kinds.lane(name);
    if (name.empty())
      diags.report<diag::IrExpected>(here(), "the name of a lane");
    else if (!known)
      diags.report<diag::TooManyKinds>(at, KindTable::maxKinds);
    lane = known.value_or(0);
    return known.has_value();
  }

  /// Actions may name those that are declared behind them.
  bool parseKindRule(KindId kind, KindInfo &info) {
    bool isBefore = acceptWord("before");
    if (!isBefore)
      expectWord("after");
    if (!expect("["))
      return false;
    while (!accept("]")) {
      SourceRange at;
      StringRef name = subject(at);
      if (name.empty()) {
        diags.report<diag::IrExpected>(here(), "the name of an action");
        return false;
      }
      pendingKinds.push_back({kind, info.rules.size(), name, at});
    }
    info.rules.push_back({isBefore, {}});
    return true;
  }

  bool parseMeeting(KindInfo &info) {
    if (acceptWord("all")) {
      info.meeting = Meeting::All;
    } else if (acceptWord("replicas")) {
      info.meeting = Meeting::Replicas;
    } else if (acceptWord("outside")) {
      SourceRange at;
      info.meeting = Meeting::Outside;
      info.outside = subject(at).str();
    } else if (expect("[")) {
      info.meeting = Meeting::Stages;
      while (!accept("]")) {
        skipSpace();
        bool isNegative = acceptHere('-');
        auto stage = number("a stage", Program::maxStages);
        if (!stage)
          return false;
        info.stages.push_back(isNegative ? -int32_t(*stage) : int32_t(*stage));
      }
    } else {
      return false;
    }
    return true;
  }

  void resolveKinds() {
    for (const PendingKind &pending : pendingKinds) {
      if (pending.kind.value >= program.kinds.size())
        continue; // Its declaration was given up.
      auto named = program.kinds.find(pending.name);
      KindInfo &info = program.kinds.declared(pending.kind);
      if (!named)
        diags.report<diag::IrNoEntry>(pending.at, "action",
                                      fmt::format("`{}`", pending.name));
      else if (pending.rule)
        info.rules[*pending.rule].kinds.push_back(*named);
      else
        info.restores = *named;
    }
  }

  bool parseParam() {
    auto name = wordOrString("the name of a parameter");
    if (!name || !expect(":"))
      return false;
    auto type = wordOrString("the type of a parameter");
    if (!type || !expect("="))
      return false;
    auto value = wordOrString("the value of a parameter");
    if (!value)
      return false;
    program.params.push_back(
        {std::move(*name), std::move(*type), std::move(*value)});
    return true;
  }

  bool parseRanks() {
    if (ranksGiven) {
      diags.report<diag::IrTwice>(keyRange, "`ranks`");
      return false;
    }
    ranksGiven = true;
    auto ranks = number("the number of ranks", Program::maxRanks);
    if (!ranks)
      return false;
    program.numRanks = *ranks;
    return true;
  }

  bool parseBackward() {
    if (acceptWord("true")) {
      program.hasBackward = true;
      return true;
    }
    program.hasBackward = false;
    return expectWord("false");
  }

  bool parseCalls() {
    StringRef word = peekWord();
    auto style = findCallStyle(word);
    if (!style) {
      diags.report<diag::IrExpected>(
          here(), llvm::join(llvm::drop_begin(callStyleNames()), " or "));
      return false;
    }
    cursor += word.size();
    if (program.calls != CallStyle::None)
      diags.report<diag::IrTwice>(keyRange, "`calls`");
    program.calls = *style;
    return true;
  }

  bool parseProven() {
    if (!expect("["))
      return false;
    while (!accept("]")) {
      const char *from = cursor;
      while (cursor != end && (isWordChar(*cursor) || *cursor == ':'))
        ++cursor;
      StringRef name(from, cursor - from);
      if (name.empty()) {
        diags.report<diag::IrExpected>(here(), "the name of a transport");
        return false;
      }
      if (!findTransport(name))
        diags.report<diag::IrUnknownTransport>(
            range(from, cursor), name.take_front(40),
            didYouMean(name, transportNames()));
      else if (llvm::is_contained(program.provenUnder, name))
        diags.report<diag::IrTwice>(range(from, cursor),
                                    fmt::format("`{}`", name));
      else
        program.provenUnder.push_back(name.str());
    }
    return true;
  }

  bool parsePreconnect() {
    if (!program.preconnect.empty())
      diags.report<diag::IrTwice>(keyRange, "`preconnect`");
    if (!expect("["))
      return false;
    while (!accept("]")) {
      const char *from = cursor;
      auto low = number("a rank", Program::maxRanks - 1);
      if (!low || !expect("-"))
        return false;
      auto high = number("a rank", Program::maxRanks - 1);
      if (!high)
        return false;
      addPair({RankId(*low), RankId(*high)}, range(from, cursor));
    }
    return true;
  }

  void addPair(RankPair pair, SourceRange at) {
    auto [low, high] = pair;
    if (low >= high)
      diags.report<diag::IrBadPair>(at, low.value, high.value);
    else if (!pairs.insert({low.value, high.value}).second)
      diags.report<diag::IrTwice>(
          at, fmt::format("the pair {}-{}", low.value, high.value));
    program.preconnect.push_back(pair);
    pairRanges.push_back(at);
  }

  /// The layers of each stage: letters, and a bar between two stages.
  bool parseLayers() {
    skipSpace();
    const char *from = cursor;
    auto text = string("the layers of the stages");
    if (!text)
      return false;
    layoutRange = range(from, cursor);
    if (!program.stageLayers.empty())
      diags.report<diag::IrTwice>(keyRange, "`layout`");
    if (!llvm::all_of(*text,
                      [](char c) { return llvm::isAlpha(c) || c == '|'; })) {
      diags.report<diag::IrExpected>(layoutRange, "letters and bars");
      return false;
    }
    program.stageLayers.clear();
    for (StringRef stage : llvm::split(*text, '|'))
      program.stageLayers.push_back(stage.str());
    return true;
  }

  bool parseFile() {
    auto index = number("a file", UINT32_MAX - 1);
    if (!index)
      return false;
    if (*index != program.files.size())
      diags.report<diag::IrOutOfOrder>(keyRange, "file", *index,
                                       program.files.size());
    auto name = string("the name of a file");
    if (!name)
      return false;
    program.files.push_back({std::move(*name), false});
    return true;
  }

  bool parseSite() {
    auto index = number("a site", UINT32_MAX - 1);
    if (!index)
      return false;
    if (*index != program.sites.size())
      diags.report<diag::IrOutOfOrder>(keyRange, "site", *index,
                                       program.sites.size());
    Site site;
    auto siteFile = number("a file", UINT32_MAX - 1);
    if (!siteFile || !expect(":"))
      return false;
    auto siteLine = number("a line", UINT32_MAX - 1);
    if (!siteLine || !expect(":"))
      return false;
    auto siteColumn = number("a column", UINT32_MAX - 1);
    if (!siteColumn)
      return false;
    site.file = *siteFile;
    site.line = *siteLine;
    site.column = *siteColumn;
    if (acceptWord("in")) {
      auto caller = number("a site", UINT32_MAX - 1);
      if (!caller)
        return false;
      site.caller = SiteId(*caller);
    }
    if (site.file >= program.files.size()) {
      diags.report<diag::IrNoEntry>(keyRange, "file", site.file);
      return false;
    }
    program.sites.push_back(site);
    siteRanges.push_back(keyRange);
    return true;
  }

  /// A site may be called from one that stands behind it, so the callers are
  /// checked at the end.
  void checkSites() {
    for (auto [i, at] : llvm::enumerate(siteRanges)) {
      uint32_t caller = program.sites[i + 1].caller.value;
      if (caller >= program.sites.size())
        diags.report<diag::IrNoEntry>(at, "site", caller);
    }
  }

  bool parsePipe() {
    auto name = string("the name of a pipe");
    if (!name || !expectWord("microbatches"))
      return false;
    auto first = number("the first microbatch", Program::maxMicrobatches);
    if (!first || !expect(".."))
      return false;
    SourceRange lastRange = here();
    auto last = number("the end of the microbatches", Program::maxMicrobatches);
    if (last && *last < *first)
      diags.report<diag::IrExpected>(
          lastRange, fmt::format("a microbatch of at least {}", *first));
    if (!last)
      return false;
    Pipe pipe;
    pipe.name = std::move(*name);
    pipe.firstMicrobatch = *first;
    pipe.numMicrobatches = std::max(*first, *last) - *first;
    if (acceptWord("slices") && !parseSlices(pipe))
      return false;
    if (!expectWord("ranks") || !expect("["))
      return false;
    while (!accept("]")) {
      SourceRange at = here();
      auto rank = number("the rank of a stage", Program::maxRanks - 1);
      if (!rank)
        return false;
      if (pipe.numStages() == Program::maxStages) {
        diags.report<diag::IrTooMany>(at, Program::maxStages,
                                      "stages in a pipe");
        return false;
      }
      pipe.rankOfStage.push_back(RankId(*rank));
    }
    return addPipe(std::move(pipe));
  }

  bool addPipe(Pipe pipe) {
    if (program.pipes.size() == Program::maxPipes) {
      diags.report<diag::IrTooMany>(keyRange, Program::maxPipes, "pipes");
      return false;
    }
    for (const Pipe &other : program.pipes) {
      uint32_t shared = std::max(pipe.firstMicrobatch, other.firstMicrobatch);
      if (pipe.hasMicrobatch(shared) && other.hasMicrobatch(shared))
        diags.report<diag::IrPipesOverlap>(keyRange, other.name, pipe.name,
                                           shared);
      if (pipe.name == other.name)
        diags.report<diag::IrTwice>(keyRange,
                                    fmt::format("pipe `{}`", pipe.name));
    }
    program.pipes.push_back(std::move(pipe));
    pipeRanges.push_back(keyRange);
    return true;
  }

  bool parseSlices(Pipe &pipe) {
    SourceRange at = here();
    auto slices = number("the slices of a sequence", Program::maxMicrobatches);
    if (!slices)
      return false;
    if (*slices == 0 || pipe.numMicrobatches % *slices != 0) {
      diags.report<diag::IrExpected>(
          at,
          fmt::format("a divisor of {} microbatches", pipe.numMicrobatches));
      return false;
    }
    pipe.slices = *slices;
    return true;
  }

  /// `"NAME" FROM -> TO`: a pipe, and what may be stages of it.
  std::optional<std::pair<StageId, StageId>> edge(Pipe *&pipe) {
    auto name = string("the name of a pipe");
    pipe = name ? pipeCalled(*name) : nullptr;
    auto from = pipe ? number("a stage", Program::maxStages) : std::nullopt;
    if (!from || !expect("->"))
      return std::nullopt;
    auto to = number("a stage", Program::maxStages);
    return to ? std::optional(std::pair(StageId(*from), StageId(*to)))
              : std::nullopt;
  }

  bool parseSkip() {
    Pipe *pipe = nullptr;
    auto found = edge(pipe);
    if (!found)
      return false;
    auto [from, to] = *found;
    if (from.value + 1 >= to.value || to.value >= pipe->numStages()) {
      diags.report<diag::IrBadEdge>(keyRange, from.value, to.value);
      return false;
    }
    pipe->skipEdges.push_back(*found);
    return true;
  }

  bool parseGap() {
    Pipe *pipe = nullptr;
    auto found = edge(pipe);
    if (!found)
      return false;
    auto [from, to] = *found;
    if (from.value + 1 != to.value || to.value >= pipe->numStages()) {
      diags.report<diag::IrExpected>(keyRange,
                                     "`gap` between a stage and the next");
      return false;
    }
    pipe->gaps.push_back(from);
    return true;
  }

  /// `carry "main" 0 -> 1 hidden[2, ?] bf16 mask[2] i32`
  bool parseCarry() {
    Pipe *pipe = nullptr;
    auto found = edge(pipe);
    if (!found)
      return false;
    EdgeTensors carried{found->first, found->second, {}};
    while (!peekWord().empty() && line == keyLine)
      if (!parseTensor(carried.tensors.emplace_back()))
        return false;
    pipe->tensors.push_back(std::move(carried));
    tensorRanges[{uint32_t(pipe - program.pipes.data()), found->first.value,
                  found->second.value}] = keyRange;
    return true;
  }

  bool parseTensor(Tensor &tensor) {
    tensor.name = peekWord().str();
    cursor += tensor.name.size();
    if (!expect("["))
      return false;
    if (!accept("]")) {
      do
        if (!parseDim(tensor))
          return false;
      while (accept(","));
      if (!expect("]"))
        return false;
    }
    SourceRange at;
    auto type = findElementType(subject(at));
    if (!type)
      diags.report<diag::IrExpected>(
          at, "a type, one of " + llvm::join(elementTypeNames(), ", "));
    tensor.type = type.value_or(tensor.type);
    return type.has_value();
  }

  bool parseDim(Tensor &tensor) {
    if (accept("?")) {
      tensor.dims.push_back(Tensor::varies);
      return true;
    }
    constexpr decimal::Scale whole{0, Tensor::maxDim};
    SourceRange at = here();
    StringRef word = peekWord();
    auto value = decimal::parse(word, whole);
    if (!value)
      diags.report<diag::IrExpected>(at, "a size, or `?`");
    cursor += value ? word.size() : 0;
    tensor.dims.push_back(value.value_or(0));
    return value.has_value();
  }

  /// `carry` may stand before the `skip` or `gap` of its edge.
  void checkTensors() {
    for (auto [i, pipe] : llvm::enumerate(program.pipes)) {
      llvm::sort(pipe.tensors, [](const EdgeTensors &a, const EdgeTensors &b) {
        return std::pair(a.from, a.to) < std::pair(b.from, b.to);
      });
      const EdgeTensors *before = nullptr;
      for (const EdgeTensors &edge : pipe.tensors) {
        SourceRange at = tensorRanges.at(
            {static_cast<uint32_t>(i), edge.from.value, edge.to.value});
        if (!pipe.hasEdge(edge.from, edge.to))
          diags.report<diag::IrExpected>(
              at, fmt::format("`carry` along an edge of `{}`", pipe.name));
        if (before && before->from == edge.from && before->to == edge.to)
          diags.report<diag::IrTwice>(
              at, fmt::format("`carry` of the edge {} -> {}", edge.from.value,
                              edge.to.value));
        before = &edge;
      }
    }
  }

  /// `scale memory [1 2 0.5]`
  bool parseScale() {
    SourceRange at;
    StringRef word = subject(at);
    MicrobatchScale scale;
    auto *known = llvm::find(scaling::names(), word);
    if (known != scaling::names().end()) {
      scale.of = MicrobatchScale::Of(known - scaling::names().begin());
    } else {
      scale.of = MicrobatchScale::Of::Time;
      scale.kind =
          computeKind(word, at, ", or " + llvm::join(scaling::names(), ", "));
      if (!scale.kind)
        return false;
    }
    auto factor = [&]() -> std::optional<int64_t> {
      StringRef text = peekWord();
      auto value = decimal::parse(text, scaling::decimals);
      if (value)
        cursor += text.size();
      else
        diags.report<diag::IrExpected>(here(), "a factor from 0 to 10^6");
      return value;
    };
    bool good = accept("[") ? parseList(program.totalMicrobatches(),
                                        scale.factors, factor)
                            : parseOne(scale.factors, factor);
    if (good) {
      program.costs.scales.push_back(std::move(scale));
      scaleRanges.push_back(keyRange);
    }
    return good;
  }

  template <class Value>
  bool parseOne(std::vector<int64_t> &values, Value value) {
    auto only = value();
    if (only)
      values.push_back(*only);
    return only.has_value();
  }

  /// Pipes may stand behind `scale`.
  void checkScales() {
    uint64_t total = program.totalMicrobatches();
    for (auto [scale, at] : llvm::zip(program.costs.scales, scaleRanges))
      if (scale.factors.size() != total)
        diags.report<diag::IrExpected>(
            at, fmt::format("a factor for each of {} microbatches", total));
  }

  /// The pipe of this name; nothing, and a report, when there is none.
  Pipe *pipeCalled(StringRef name) {
    auto pipe = llvm::find_if(
        program.pipes, [&](const Pipe &pipe) { return pipe.name == name; });
    if (pipe != program.pipes.end())
      return &*pipe;
    diags.report<diag::IrNoEntry>(keyRange, "pipe", fmt::format("`{}`", name));
    return nullptr;
  }

  /// A decimal, negative only where that has a meaning.
  std::optional<int64_t> decimal(decimal::Scale scale, bool isSigned = false) {
    StringRef word = peekWord();
    StringRef digits = word;
    bool isNegative = isSigned && digits.consume_front("-");
    std::optional<int64_t> value = decimal::parse(digits, scale);
    if (value)
      cursor += word.size();
    else if (scale.places == cost::scale.places)
      diags.report<diag::IrNotACost>(here(), word.substr(0, 40));
    else
      diags.report<diag::IrNotAnAmount>(here(), word.substr(0, 40));
    return value && isNegative ? std::optional(-*value) : value;
  }
  std::optional<Time> time() { return decimal(cost::scale); }
  std::optional<Amount> amount() { return decimal(ppcc::amount::scale); }

  /// A word that says what a setting is about; the place is put into `at`.
  StringRef subject(SourceRange &at) {
    StringRef word = peekWord();
    at = range(word.begin(), word.end());
    cursor += word.size();
    return word;
  }

  /// The kind with these letters; nothing, and a report, when it does not
  /// compute.
  std::optional<KindId> computeKind(StringRef letters, SourceRange at,
                                    StringRef others) {
    auto kindId = program.kinds.find(letters);
    if (kindId && program.kinds[*kindId].isCompute())
      return kindId;
    diags.report<diag::IrExpected>(
        at, fmt::format("the letters of a compute action{}", others));
    return std::nullopt;
  }

  bool parseCost() {
    SourceRange at;
    StringRef word = subject(at);
    if (word == "overlap")
      return setCost(program.costs.overlap, "`cost overlap`");
    if (word.contains('.'))
      return parseNodeCost(word, at);
    auto kindId = computeKind(word, at, ", or `overlap`");
    if (!kindId)
      return false;
    CostSetting setting{*kindId, {}, {}};
    if (!parseValues(setting.pipe, setting.times, [&] { return time(); }))
      return false;
    if (!setting.times.empty())
      program.costs.actions.push_back(std::move(setting));
    return true;
  }

  /// One value, for each stage or for each stage of a pipe; or a list, with one
  /// for each stage of the pipe. A pipe may have no stages.
  template <class Value>
  bool parseValues(std::optional<PipeId> &pipeId, std::vector<int64_t> &values,
                   Value value) {
    if (peek('"')) {
      auto name = string("the name of a pipe");
      Pipe *pipe = name ? pipeCalled(*name) : nullptr;
      if (!pipe)
        return false;
      pipeId = PipeId(pipe - program.pipes.data());
    }
    if (pipeId && accept("["))
      return parseList(program.pipes[pipeId->value].numStages(), values, value);
    return parseOne(values, value);
  }

  template <class Value>
  bool parseList(size_t size, std::vector<int64_t> &values, Value value) {
    while (values.size() != size) {
      auto next = value();
      if (!next)
        return false;
      values.push_back(*next);
    }
    return expect("]");
  }

  bool parseNodeCost(StringRef word, SourceRange at) {
    auto [letters, name] = word.split('.');
    auto part = computeKind(letters, at, " and the name of a node");
    auto value = part ? time() : std::nullopt;
    if (!value)
      return false;
    program.costs.nodes.push_back({*part, name.str(), *value});
    return true;
  }

  // Graphs of nodes.

  /// The number of a word in a table, where it is added when it is new.
  static uint32_t numberOf(StringRef word, std::vector<std::string> &table,
                           llvm::StringMap<uint32_t> &numbers) {
    auto [found, isNew] =
        numbers.try_emplace(word, static_cast<uint32_t>(table.size()));
    if (isNew)
      table.push_back(word.str());
    return found->second;
  }

  /// `F.mlp`, or `F.L2.mlp` where nodes have layers.
  bool parseNodeName(KindId &part, uint32_t &name, uint32_t *layer) {
    SourceRange at;
    auto [letters, path] = subject(at).split('.');
    auto kindId = computeKind(letters, at, ", and the name of a node");
    if (!kindId)
      return false;
    part = *kindId;
    auto [head, tail] = path.split('.');
    if (layer && !tail.empty() &&
        (!head.consume_front("L") || head.getAsInteger(10, *layer))) {
      diags.report<diag::IrExpected>(at, "a layer, as in `F.L0.mlp`");
      return false;
    }
    name = numberOf(tail.empty() ? path : tail, program.nodes.names, nodeNames);
    return true;
  }

  bool parseGraph() {
    SourceRange at;
    NodeGraph graph;
    auto kindId = computeKind(subject(at), at, "");
    if (!kindId || !expectWord("layers"))
      return false;
    graph.kind = *kindId;
    auto layers = number("the layers of a graph", NodeGraphs::maxNodes);
    if (!layers)
      return false;
    graph.layers = *layers;
    graph.down = acceptWord("down");
    if (!expect("["))
      return false;
    while (!accept("]"))
      if (!parseNode(graph))
        return false;
    numNodes += graph.nodes.size() + graph.layers;
    if (numNodes > NodeGraphs::maxNodes) {
      diags.report<diag::IrTooMany>(keyRange, NodeGraphs::maxNodes,
                                    "layers and nodes of graphs");
      return false;
    }
    program.nodes.graphs.push_back(std::move(graph));
    return true;
  }

  /// `comm:F.L0.combine<2,3`.
  bool parseNode(NodeGraph &graph) {
    GraphNode node;
    SourceRange at = here();
    StringRef lane = peekWord();
    cursor += lane.size();
    node.lane = numberOf(lane, program.nodes.lanes, laneNumbers);
    if (node.lane >= NodeGraphs::maxLanes) {
      diags.report<diag::IrTooMany>(at, NodeGraphs::maxLanes, "lanes");
      return false;
    }
    if (!expect(":") || !parseNodeName(node.part, node.name, &node.layer))
      return false;
    if (node.layer != GraphNode::noLayer && node.layer >= graph.layers) {
      diags.report<diag::IrNoEntry>(at, "layer", node.layer);
      return false;
    }
    for (bool more = accept("<"); more; more = accept(",")) {
      auto needed = number("a node", NodeGraphs::maxNodes);
      if (!needed)
        return false;
      if (*needed >= graph.nodes.size()) {
        diags.report<diag::IrNodeNeeds>(at, graph.nodes.size(), *needed);
        return false;
      }
      node.needs.push_back(*needed);
    }
    graph.nodes.push_back(std::move(node));
    return true;
  }

  bool parseGraphUse() {
    SourceRange at;
    auto kindId = computeKind(subject(at), at, "");
    auto name = kindId ? string("the name of a pipe") : std::nullopt;
    Pipe *pipe = name ? pipeCalled(*name) : nullptr;
    if (!pipe || !expect("["))
      return false;
    GraphUse use{*kindId, PipeId(pipe - program.pipes.data()), {}};
    while (!accept("]")) {
      if (accept("-")) {
        use.graphs.push_back(GraphUse::none);
        continue;
      }
      SourceRange graphAt = here();
      auto graph = number("a graph", NodeGraphs::maxNodes);
      if (!graph)
        return false;
      if (*graph >= program.nodes.graphs.size() ||
          program.nodes.graphs[*graph].kind != use.kind) {
        diags.report<diag::IrNoEntry>(
            graphAt,
            fmt::format("graph of `{}`", program.kinds[*kindId].letters),
            *graph);
        return false;
      }
      use.graphs.push_back(*graph);
    }
    if (use.graphs.size() != 1 && use.graphs.size() != pipe->numStages()) {
      diags.report<diag::IrGraphCount>(keyRange, use.graphs.size(),
                                       pipe->numStages(), pipe->name);
      return false;
    }
    for (const GraphUse &other : program.nodes.uses)
      if (other.kind == use.kind && other.pipe == use.pipe)
        diags.report<diag::IrTwice>(
            keyRange, fmt::format("`graphs {}` of pipe `{}`",
                                  program.kinds[*kindId].letters, pipe->name));
    program.nodes.uses.push_back(std::move(use));
    return true;
  }

  bool parsePattern() {
    NodePattern pattern;
    while (!acceptWord("before")) {
      SourceRange at;
      auto kindId = computeKind(subject(at), at, "");
      if (!kindId)
        return false;
      if (llvm::is_contained(pattern.kinds, *kindId))
        diags.report<diag::IrTwice>(
            at, fmt::format("`{}`", program.kinds[*kindId].letters));
      pattern.kinds.push_back(*kindId);
    }
    if (!parsePlaces(pattern.before) || !expectWord("layer") ||
        !parsePlaces(pattern.layer) || !expectWord("after") ||
        !parsePlaces(pattern.after))
      return false;
    program.nodes.patterns.push_back(std::move(pattern));
    patternRanges.push_back(keyRange);
    return true;
  }

  /// Graphs may stand behind the patterns that order them.
  void checkPatterns() {
    for (auto [pattern, at] : llvm::zip(program.nodes.patterns, patternRanges))
      for (auto [i, graph] : llvm::enumerate(program.nodes.graphs))
        if (llvm::is_contained(pattern.kinds, graph.kind) &&
            !checkPattern(pattern, at, graph, i))
          return;
  }

  bool checkPattern(const NodePattern &pattern, SourceRange at,
                    const NodeGraph &graph, size_t number) {
    constexpr uint64_t maxPlaces = uint64_t(1) << 28;
    numPlaces += placesOf(pattern, graph);
    if (numPlaces > maxPlaces) {
      diags.report<diag::IrTooMany>(at, maxPlaces, "places in patterns");
      return false;
    }
    auto fault = findFault(pattern, graph);
    if (!fault)
      return true;
    const GraphNode &node = graph.nodes[fault->node];
    diags.report<diag::IrPatternFault>(at, fault->words(),
                                       program.kinds[node.part].letters + "." +
                                           program.nodes.pathOf(node),
                                       number);
    return false;
  }

  bool parsePlaces(std::vector<PatternNode> &places) {
    if (!expect("["))
      return false;
    while (!accept("]")) {
      PatternNode place;
      place.last = accept("last:");
      if (!parseNodeName(place.part, place.name, nullptr))
        return false;
      places.push_back(place);
    }
    return true;
  }

  bool parseGroupRule() {
    SourceRange at;
    StringRef rule = subject(at);
    if (rule != "sum" && rule != "max") {
      diags.report<diag::IrExpected>(at, "`sum` or `max`");
      return false;
    }
    auto factor = time();
    program.costs.groupRule = rule == "max" ? GroupRule::Max : GroupRule::Sum;
    program.costs.groupFactor = factor.value_or(cost::unit);
    return factor.has_value();
  }

  bool parseLatency() {
    if (!peek('"'))
      return setCost(program.costs.latency, "`latency`");
    return parseStages(program.costs.latencies, [&] { return time(); });
  }
  bool parseBytes() {
    return parseStages(program.costs.bytes, [&] { return amount(); });
  }
  bool parseBandwidth() {
    return parseStages(program.costs.bandwidths, [&] {
      SourceRange at = here();
      auto value = amount();
      if (value && *value == 0) {
        diags.report<diag::NoBandwidth>(at);
        return std::optional<int64_t>();
      }
      return value;
    });
  }

  template <class Value>
  bool parseStages(std::vector<StageSetting> &settings, Value value) {
    StageSetting setting;
    if (!parseValues(setting.pipe, setting.values, value))
      return false;
    if (!setting.values.empty())
      settings.push_back(std::move(setting));
    return true;
  }

  bool parseMemory() {
    SourceRange at;
    StringRef word = subject(at);
    if (word == "static")
      return parseStages(program.costs.staticMemory, [&] { return amount(); });
    if (word == "limit")
      return parseLimits();
    auto kindId = computeKind(word, at, ", `static` or `limit`");
    if (!kindId)
      return false;
    CostSetting setting{*kindId, {}, {}};
    if (!parseValues(setting.pipe, setting.times,
                     [&] { return decimal(ppcc::amount::scale, true); }))
      return false;
    if (!setting.times.empty())
      program.costs.memory.push_back(std::move(setting));
    return true;
  }

  /// One limit, or a list with one for each rank.
  bool parseLimits() {
    std::vector<int64_t> &limits = program.costs.memoryLimits;
    limits.clear();
    limitsRange = keyRange;
    bool isList = accept("[");
    while (isList ? !accept("]") : limits.empty()) {
      auto limit = amount();
      if (!limit)
        return false;
      limits.push_back(*limit);
    }
    return true;
  }

  bool setCost(std::optional<Time> &cost, StringRef what) {
    if (cost)
      diags.report<diag::IrTwice>(keyRange, what);
    cost = time();
    return cost.has_value();
  }

  /// Without `ranks` there are as many as the pipes use.
  void checkRanks() {
    if (!ranksGiven)
      for (const Pipe &pipe : program.pipes)
        for (RankId rank : pipe.rankOfStage)
          program.numRanks = std::max(program.numRanks, rank.value + 1);
    for (auto [pipe, at] : llvm::zip(program.pipes, pipeRanges))
      for (RankId rank : pipe.rankOfStage)
        if (rank.value >= program.numRanks) {
          diags.report<diag::IrNoRank>(at, rank.value, program.numRanks);
          break;
        }
    for (auto [pair, at] : llvm::zip(program.preconnect, pairRanges))
      if (pair.high.value >= program.numRanks)
        diags.report<diag::IrNoRank>(at, pair.high.value, program.numRanks);
    for (const Pipe &pipe : program.pipes)
      if (!program.stageLayers.empty() &&
          program.stageLayers.size() != pipe.numStages())
        diags.report<diag::CostCount>(
            layoutRange, "layout", program.stageLayers.size(),
            fmt::format("{} stages in `{}`", pipe.numStages(), pipe.name));
    size_t limits = program.costs.memoryLimits.size();
    if (limits > 1 && limits != program.numRanks)
      diags.report<diag::CostCount>(limitsRange, "memory limit", limits,
                                    fmt::format("{} ranks", program.numRanks));
  }

  // The actions.

  void parseRank() {
    StringRef word = peekWord();
    SourceRange at = here();
    if (!expectWord("rank")) {
      skipPastBrace();
      return;
    }
    at = range(word.begin(), word.end());
    auto rank = number("a rank", Program::maxRanks - 1);
    bool known = rank && *rank < program.numRanks;
    if (rank && !known)
      diags.report<diag::IrNoRank>(at, *rank, program.numRanks);
    if (known && *rank < program.ranksBegun()) {
      diags.report<diag::IrOutOfOrder>(
          at, "rank", *rank,
          fmt::format("one above {}", program.ranksBegun() - 1));
      known = false;
    }
    while (known && program.ranksBegun() <= *rank)
      program.beginRank();
    // The actions of a rank that cannot be are read for their errors.
    appending = known;
    wholeCells.clear();
    if (!expect("{")) {
      skipPastBrace();
      return;
    }
    phase = PhaseId();
    while (!diags.saturated()) {
      if (accept("}"))
        return;
      if (atEnd() || peekWord() == "rank") {
        diags.report<diag::IrExpected>(here(), "`}`, the end of `rank`");
        return;
      }
      parseRow();
    }
  }

  void skipPastBrace() {
    while (cursor != end && *cursor != '}') {
      skipSpace();
      if (cursor != end && *cursor != '}')
        ++cursor;
    }
    accept("}");
  }

  void parseRow() {
    if (llvm::isDigit(*cursor)) {
      parseCell(false);
    } else if (*cursor == '(') {
      parseGroup();
    } else if (acceptWord("phase")) {
      parsePhase();
    } else if (acceptWord("loop")) {
      parseLoop();
    } else if (beginsRankCell()) {
      parseCell(false);
    } else {
      const char *from = cursor;
      skipCell();
      if (cursor == from)
        ++cursor;
      diags.report<diag::IrExpected>(range(from, cursor),
                                     "an action, such as `0F3`, `phase` or "
                                     "`loop`");
    }
  }

  /// Whether an action of the rank stands here, which has no number in front.
  bool beginsRankCell() const {
    const char *to = cursor;
    while (to != end && (llvm::isAlpha(*to) || *to == '_'))
      ++to;
    auto kind = program.kinds.find(StringRef(cursor, to - cursor));
    return kind && program.kinds[*kind].scope == KindScope::Rank;
  }

  void parseLoop() {
    SourceRange at = here();
    Loop loop;
    auto count = number("how often it turns", UINT32_MAX - 1);
    bool good = count && *count != 0;
    if (count && *count == 0)
      diags.report<diag::IrExpected>(at, "a number of turns, at least 1");
    if (!count || !expectWord("advance"))
      return skipPastBrace();
    skipSpace();
    bool down = acceptHere('-');
    auto advance = number("what a turn adds to microbatches", INT32_MAX);
    if (!advance || !expect("{"))
      return skipPastBrace();
    if (inLoop)
      diags.report<diag::IrExpected>(at, "no loop inside of another");
    good &= !inLoop;
    loop.count = good ? *count : 1;
    loop.advance = static_cast<int32_t>(down ? -int64_t(*advance) : *advance);
    loop.begin = ActionId(program.size());
    if (good)
      inLoop = loop;
    while (!diags.saturated() && !accept("}")) {
      if (atEnd() || peekWord() == "rank") {
        diags.report<diag::IrExpected>(here(), "`}`, the end of `loop`");
        break;
      }
      parseRow();
    }
    if (!good)
      return;
    inLoop.reset();
    loop.end = ActionId(program.size());
    if (loop.begin == loop.end || !appending)
      return;
    uint64_t rows =
        uint64_t(loop.count - 1) * (loop.end.value - loop.begin.value);
    if (extraRows + rows + program.size() >= UINT32_MAX) {
      diags.report<diag::IrTooMany>(at, UINT32_MAX - 1, "actions");
      return;
    }
    extraRows += rows;
    program.loops.push_back(loop);
  }

  void parsePhase() {
    auto name = string("the name of a phase");
    if (!name)
      return;
    auto found = llvm::find(program.phases, *name);
    if (found == program.phases.end() &&
        program.phases.size() > Program::maxPhases) {
      diags.report<diag::IrTooMany>(here(), Program::maxPhases, "phases");
      return;
    }
    phase = program.phase(*name);
  }

  void parseGroup() {
    ++cursor;
    bool joined = false;
    do {
      skipSpace();
      if (cursor == end || !(llvm::isDigit(*cursor) || beginsRankCell())) {
        diags.report<diag::IrExpected>(here(), "an action, such as `0F3`");
        skipCell();
      } else {
        joined |= parseCell(joined);
      }
    } while (!diags.saturated() && accept(";"));
    expect(")");
  }

  /// Moves to where the next cell may begin.
  void skipCell() {
    while (cursor != end && !isSpace(*cursor) &&
           !StringRef("();{}").contains(*cursor))
      ++cursor;
  }

  /// False, and a report, when it is wrong.
  bool parseCell(bool joined) {
    const char *from = cursor;
    Action action;
    action.joined = joined;
    action.phase = phase;
    if (!readCell(action))
      return false;
    if (action.site == SiteId())
      action.site = siteAt(from);
    if (program.size() == UINT32_MAX - 1) {
      diags.report<diag::IrTooMany>(range(from, cursor), UINT32_MAX - 1,
                                    "actions");
      cursor = end;
      return false;
    }
    if (appending)
      program.append(action);
    return true;
  }

  bool readCell(Action &action) {
    const char *from = cursor;
    bool hasStage = llvm::isDigit(*cursor);
    auto stage = hasStage ? digits("a stage", UINT32_MAX - 1) : 0;
    const char *letters = cursor;
    while (cursor != end && (llvm::isAlpha(*cursor) || *cursor == '_'))
      ++cursor;
    StringRef kindLetters(letters, cursor - letters);
    std::optional<KindId> kindId = kindOf(kindLetters);
    if (!stage)
      return skippedCell();
    bool hasMicrobatch = cursor != end && llvm::isDigit(*cursor);
    KindScope scope =
        kindId ? program.kinds[*kindId].scope : KindScope::Microbatch;
    if (!kindId || hasMicrobatch != (scope == KindScope::Microbatch) ||
        hasStage == (scope == KindScope::Rank))
      return noAction(from, kindId ? StringRef() : kindLetters);
    auto microbatch = hasMicrobatch
                          ? digits("a microbatch", Program::maxMicrobatches)
                          : std::optional(Action::noMicrobatch);
    if (!microbatch)
      return skippedCell();
    std::optional<uint32_t> peer, site;
    const KindInfo &info = program.kinds[*kindId];
    if (!info.isCompute() &&
        acceptHere(info.kindClass == KindClass::Send ? '>' : '<') &&
        !(peer = digits("a stage", UINT32_MAX - 1)))
      return skippedCell();
    const char *to = cursor;
    if (acceptHere('@') && !(site = digits("a site", UINT32_MAX - 1)))
      return skippedCell();
    if (!atCellEnd())
      return noAction(from);
    return place(action, *kindId, *stage, *microbatch, peer, range(from, to)) &&
           setSite(action, site, from);
  }

  bool acceptHere(char c) {
    bool found = cursor != end && *cursor == c;
    cursor += found;
    return found;
  }

  /// Leaves a cell whose number was reported.
  bool skippedCell() {
    skipCell();
    return false;
  }

  bool atCellEnd() const {
    return cursor == end || isSpace(*cursor) || *cursor == '/' ||
           StringRef("();{}").contains(*cursor);
  }

  std::optional<KindId> kindOf(StringRef letters) const {
    if (letters.size() != 1)
      return program.kinds.find(letters);
    uint16_t kind = kindOfLetter[static_cast<unsigned char>(letters[0])];
    return kind == noKind ? std::nullopt : std::optional(KindId(kind));
  }

  /// Reports the cell at `from`.
  bool noAction(const char *from, StringRef unknownLetters = {}) {
    skipCell();
    llvm::SmallVector<StringRef> letters;
    for (const KindInfo &info : program.kinds.rows())
      letters.push_back(info.letters);
    std::string hint =
        unknownLetters.size() < 2 ? "" : didYouMean(unknownLetters, letters);
    diags.report<diag::IrNotAnAction>(
        range(from, cursor),
        StringRef(from, std::min<size_t>(cursor - from, 40)), hint);
    return false;
  }

  /// Fills in the action; reports a stage, microbatch or peer that does not
  /// exist.
  bool place(Action &action, KindId kindId, uint32_t stage, uint32_t microbatch,
             std::optional<uint32_t> peer, SourceRange at) {
    if (microbatch == Action::noMicrobatch)
      return placeWhole(action, kindId, stage, at);
    if (lastPipe >= program.pipes.size() ||
        !program.pipes[lastPipe].hasMicrobatch(microbatch)) {
      auto pipe = program.pipeOfMicrobatch(microbatch);
      if (!pipe) {
        diags.report<diag::IrNoMicrobatch>(at, microbatch);
        return false;
      }
      lastPipe = pipe->value;
    }
    const Pipe &pipe = program.pipes[lastPipe];
    if (inLoop) {
      int64_t last = microbatch + int64_t(inLoop->count - 1) * inLoop->advance;
      if (last < pipe.firstMicrobatch || last >= pipe.endMicrobatch()) {
        diags.report<diag::IrLoopTooLong>(at, inLoop->count, last, pipe.name);
        return false;
      }
    }
    if (std::max(stage, peer.value_or(0)) >= pipe.numStages()) {
      diags.report<diag::IrNoStage>(at, std::max(stage, peer.value_or(0)),
                                    pipe.name, pipe.numStages());
      return false;
    }
    action.kind = kindId;
    action.pipe = PipeId(lastPipe);
    action.stage = StageId(stage);
    action.microbatch = microbatch;
    const KindInfo &info = program.kinds[kindId];
    if (info.isCompute())
      return true;
    if (!peer) {
      bool toNext = (info.kindClass == KindClass::Send) ==
                    bool(info.defines & slot::Output);
      peer = toNext ? stage + 1 : stage - 1;
      if (*peer >= pipe.numStages()) {
        diags.report<diag::IrNoPeer>(
            at, sources.text(file).slice(offset(at.begin), offset(at.end)));
        return false;
      }
    }
    action.peer = StageId(*peer);
    return true;
  }

  /// The same for an action of a stage or a rank. Where the rank hosts the
  /// stage in several pipes, the first such cell is of the first pipe, and so
  /// on.
  bool placeWhole(Action &action, KindId kindId, uint32_t stage,
                  SourceRange at) {
    action.kind = kindId;
    action.microbatch = Action::noMicrobatch;
    RankId rank(std::max(program.ranksBegun(), 1u) - 1);
    if (program.kinds[kindId].scope == KindScope::Rank) {
      auto first = program.firstStageOf(rank);
      if (!first) {
        diags.report<diag::NoChunk>(at, rank.value, "");
        return false;
      }
      std::tie(action.pipe, action.stage) = *first;
      return true;
    }
    std::optional<PipeId> other, host;
    uint32_t &seen = wholeCells[{kindId.value, stage}];
    uint32_t number = 0;
    for (auto [i, pipe] : llvm::enumerate(program.pipes)) {
      if (stage >= pipe.numStages())
        continue;
      if (!other)
        other = PipeId(i);
      if (pipe.rankOfStage[stage] == rank && number++ <= seen)
        host = PipeId(i);
    }
    ++seen;
    if (!other) {
      const Pipe *pipe = program.pipes.empty() ? nullptr : &program.pipes[0];
      diags.report<diag::IrNoStage>(at, stage, pipe ? pipe->name : "",
                                    pipe ? pipe->numStages() : 0);
      return false;
    }
    action.pipe = host.value_or(*other);
    action.stage = StageId(stage);
    return true;
  }

  size_t offset(SourceLoc at) const {
    return at.raw - sources.loc(file, 0).raw;
  }

  bool setSite(Action &action, std::optional<uint32_t> site, const char *from) {
    if (!site)
      return true;
    if (*site >= program.sites.size() || *site == 0 ||
        (ownFile && program.sites[*site].file == *ownFile)) {
      diags.report<diag::IrNoEntry>(range(from, cursor), "site", *site);
      return false;
    }
    action.site = SiteId(*site);
    return true;
  }

  /// The place of a cell in this text.
  SiteId siteAt(const char *at) {
    if (!appending)
      return {};
    if (!ownFile) {
      ownFile = static_cast<uint32_t>(program.files.size());
      program.files.push_back({sources.name(file).str(), true});
    }
    program.sites.push_back(
        {*ownFile, line, static_cast<uint32_t>(at - lineStart + 1), {}});
    return SiteId(program.sites.size() - 1);
  }

  static constexpr uint16_t noKind = 0xFFFF;

  /// An action that another one names.
  struct PendingKind {
    KindId kind;                ///< That names it,
    std::optional<size_t> rule; ///< in this rule, else as what it restores.
    StringRef name;
    SourceRange at;
  };

  const SourceManager &sources;
  DiagnosticEngine &diags;
  uint32_t file;
  StringRef text;
  const char *cursor, *end;
  const char *lineStart;
  uint32_t line = 1;

  Program program;
  std::array<uint16_t, 256> kindOfLetter;
  std::vector<PendingKind> pendingKinds;
  bool ranksGiven = false;
  uint32_t keyLine = 0;
  SourceRange keyRange; ///< The key of the item that is being read.
  SourceRange limitsRange;
  llvm::StringMap<uint32_t> laneNumbers, nodeNames;
  uint64_t numNodes = 0;  ///< Of all graphs, and layers.
  uint64_t numPlaces = 0; ///< Looked at in patterns, for all graphs.
  std::vector<SourceRange> patternRanges;
  std::vector<SourceRange> siteRanges,
      pipeRanges; ///< The keys of those read so far.
  std::vector<SourceRange> scaleRanges;
  std::map<std::array<uint32_t, 3>, SourceRange>
      tensorRanges;                    ///< By pipe and stages.
  std::vector<SourceRange> pairRanges; ///< Of `preconnect`.
  SourceRange layoutRange;
  llvm::DenseSet<std::pair<uint32_t, uint32_t>> pairs;
  std::optional<uint32_t>
      ownFile; ///< The entry of this text in Program::files.
  PhaseId phase;
  /// By kind and stage: the rank's cells without a microbatch.
  llvm::DenseMap<std::pair<uint32_t, uint32_t>, uint32_t> wholeCells;
  uint32_t lastPipe = 0;
  bool appending = false; ///< The rank exists, so that its actions count.
  std::optional<Loop> inLoop;
  uint64_t extraRows = 0; ///< That loops add when they are written out.
};

} // namespace

std::optional<Program> ppcc::parseProgram(uint32_t file,
                                          const SourceManager &sources,
                                          DiagnosticEngine &diags) {
  return Parser(file, sources, diags).parse();
}
