// Reads a program from text: the head, section by section, and then the
// actions.
#include "TextCosts.h"
#include "TextKinds.h"
#include "TextNodes.h"
#include "TextPipes.h"
#include "TextRows.h"
#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Text.h"
#include "ppcc/IR/Transport.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace ppcc;
using llvm::StringRef;

namespace {

/// Everything but the actions.
class HeadReader : TextSection {
public:
  HeadReader(TextCursor &text, Head &program, Facts &facts,
             DiagnosticEngine &diags)
      : TextSection(text, program, diags), facts(facts),
        kinds(text, program, diags), pipes(text, program, diags),
        costs(text, program, diags), nodes(text, program, diags) {}

  void read();

private:
  bool item();
  void check();

  bool param();
  bool ranks();
  bool backward();
  bool file();
  bool site();
  bool layout();
  bool calls();
  bool proven();
  bool preconnect();
  void addPair(RankPair pair, SourceRange at);

  void checkSites();
  void checkPreconnect();

  /// Reads an item of a section.
  template <auto Section, auto Read> static bool in(HeadReader &head) {
    return (head.*Section.*Read)();
  }
  /// Reads an item that is none's.
  template <auto Read> static bool own(HeadReader &head) {
    return (head.*Read)();
  }
  struct Key {
    StringRef name;
    bool (*read)(HeadReader &);
  };
  static const Key keys[];

  Facts &facts;
  TextKinds kinds;
  TextPipes pipes;
  TextCosts costs;
  TextNodes nodes;
  bool ranksGiven = false;
  SourceRange layoutRange;
  std::vector<SourceRange> siteRanges; ///< The keys of those read so far.
  std::vector<SourceRange> pairRanges; ///< Of `preconnect`.
  llvm::DenseSet<std::pair<uint32_t, uint32_t>> pairs;
};

const HeadReader::Key HeadReader::keys[] = {
    {"param", own<&HeadReader::param>},
    {"ranks", own<&HeadReader::ranks>},
    {"backward", own<&HeadReader::backward>},
    {"file", own<&HeadReader::file>},
    {"site", own<&HeadReader::site>},
    {"pipe", in<&HeadReader::pipes, &TextPipes::pipe>},
    {"skip", in<&HeadReader::pipes, &TextPipes::skip>},
    {"gap", in<&HeadReader::pipes, &TextPipes::gap>},
    {"carry", in<&HeadReader::pipes, &TextPipes::carry>},
    {"layout", own<&HeadReader::layout>},
    {"proven", own<&HeadReader::proven>},
    {"preconnect", own<&HeadReader::preconnect>},
    {"calls", own<&HeadReader::calls>},
    {"graph", in<&HeadReader::nodes, &TextNodes::graph>},
    {"graphs", in<&HeadReader::nodes, &TextNodes::use>},
    {"pattern", in<&HeadReader::nodes, &TextNodes::pattern>},
    {"action", in<&HeadReader::kinds, &TextKinds::action>},
};

void HeadReader::read() {
  size_t errorsBefore = diags.errorCount();
  SourceRange nameRange = text.range(text.peekWord());
  if (!text.expectWord("program"))
    return text.stop();
  if (text.peek('"'))
    if (auto name = text.string("the program's name"))
      program.name = std::move(*name);
  if (!text.expect("{"))
    return text.stop();
  bool closed = false;
  while (!diags.saturated() && !(closed = text.accept("}")) && !text.atEnd())
    if (!item())
      text.skipItem();
  if (!closed && !diags.saturated())
    text.expected("`}`, the end of `program`");
  bool isGood = diags.errorCount() == errorsBefore;
  check();
  if (isGood && program.numRanks == 0)
    diags.report<diag::IrExpected>(
        nameRange, "a rank at least: say `ranks` or give stages a place");
}

bool HeadReader::item() {
  StringRef word = text.takeKey();
  if (word.empty()) {
    text.expected("a key, such as `pipe`");
    text.takeOne();
    return false;
  }
  for (const Key &key : keys)
    if (key.name == word)
      return key.read(*this);
  if (llvm::is_contained(costItems(), word))
    return costs.setting(word);
  std::vector<StringRef> names = costItems();
  for (const Key &key : keys)
    names.push_back(key.name);
  diags.report<diag::IrUnknownKey>(text.keyRange(), word,
                                   didYouMean(word, names));
  return false;
}

void HeadReader::check() {
  checkSites();
  nodes.check();
  kinds.resolve();
  pipes.finish();
  pipes.checkRanks(ranksGiven);
  checkPreconnect();
  checkLayout(program, layoutRange, diags);
  costs.check();
}

// ---- Items ----

bool HeadReader::param() {
  auto name = text.wordOrString("the name of a parameter");
  if (!name || !text.expect(":"))
    return false;
  auto type = text.wordOrString("the type of a parameter");
  if (!type || !text.expect("="))
    return false;
  auto value = text.wordOrString("the value of a parameter");
  if (!value)
    return false;
  program.params.push_back(
      {std::move(*name), std::move(*type), std::move(*value)});
  return true;
}

bool HeadReader::ranks() {
  if (ranksGiven) {
    diags.report<diag::IrTwice>(text.keyRange(), "`ranks`");
    return false;
  }
  ranksGiven = true;
  text.skipSpace();
  SourceRange at = text.here();
  auto ranks = text.number("the number of ranks", Program::maxRanks);
  if (ranks == 0)
    diags.report<diag::IrExpected>(at, "a rank at least");
  if (!ranks)
    return false;
  program.numRanks = *ranks;
  return true;
}

bool HeadReader::backward() {
  program.hasBackward = text.acceptWord("true");
  return program.hasBackward || text.expectWord("false");
}

bool HeadReader::file() {
  auto index = text.number("a file", UINT32_MAX - 1);
  if (!index)
    return false;
  if (*index != program.files.size())
    diags.report<diag::IrOutOfOrder>(text.keyRange(), "file", *index,
                                     program.files.size());
  auto name = text.string("the name of a file");
  if (!name)
    return false;
  program.files.push_back({std::move(*name), false});
  return true;
}

bool HeadReader::site() {
  auto index = text.number("a site", UINT32_MAX - 1);
  if (!index)
    return false;
  if (*index != program.sites.size())
    diags.report<diag::IrOutOfOrder>(text.keyRange(), "site", *index,
                                     program.sites.size());
  auto file = text.number("a file", UINT32_MAX - 1);
  if (!file || !text.expect(":"))
    return false;
  auto line = text.number("a line", UINT32_MAX - 1);
  if (!line || !text.expect(":"))
    return false;
  auto column = text.number("a column", UINT32_MAX - 1);
  if (!column)
    return false;
  Site site{*file, *line, *column, {}};
  if (text.acceptWord("in")) {
    auto caller = text.number("a site", UINT32_MAX - 1);
    if (!caller)
      return false;
    site.caller = SiteId(*caller);
  }
  if (site.file >= program.files.size()) {
    diags.report<diag::IrNoEntry>(text.keyRange(), "file", site.file);
    return false;
  }
  program.sites.push_back(site);
  siteRanges.push_back(text.keyRange());
  return true;
}

/// The layers of each stage: letters, and a bar between two stages.
bool HeadReader::layout() {
  text.skipSpace();
  const char *from = text.place();
  auto layers = text.string("the layers of the stages");
  if (!layers)
    return false;
  layoutRange = text.rangeFrom(from);
  if (!program.stageLayers.empty())
    diags.report<diag::IrTwice>(text.keyRange(), "`layout`");
  if (!llvm::all_of(*layers,
                    [](char c) { return llvm::isAlpha(c) || c == '|'; })) {
    diags.report<diag::IrExpected>(layoutRange, "letters and bars");
    return false;
  }
  program.stageLayers.clear();
  for (StringRef stage : llvm::split(*layers, '|'))
    program.stageLayers.push_back(stage.str());
  return true;
}

bool HeadReader::calls() {
  StringRef word = text.peekWord();
  auto style = findCallStyle(word);
  if (!style)
    return text.expected(
        llvm::join(llvm::drop_begin(callStyleNames()), " or "));
  text.take(word);
  if (program.calls != CallStyle::None)
    diags.report<diag::IrTwice>(text.keyRange(), "`calls`");
  program.calls = *style;
  return true;
}

/// Whoever wrote the text could write this too: passes prove it, nothing else.
bool HeadReader::proven() {
  std::vector<StringRef> seen;
  if (!text.expect("["))
    return false;
  while (!text.accept("]")) {
    StringRef name = text.takeWhile(
        [](char c) { return TextCursor::isWordChar(c) || c == ':'; });
    if (name.empty())
      return text.expected("the name of a transport");
    if (!findTransport(name))
      diags.report<diag::IrUnknownTransport>(
          text.range(name), name.take_front(40),
          didYouMean(name, transportNames()));
    else if (llvm::is_contained(seen, name))
      diags.report<diag::IrTwice>(text.range(name), fmt::format("`{}`", name));
    seen.push_back(name);
  }
  return true;
}

bool HeadReader::preconnect() {
  if (!facts.preconnect.empty())
    diags.report<diag::IrTwice>(text.keyRange(), "`preconnect`");
  if (!text.expect("["))
    return false;
  while (!text.accept("]")) {
    const char *from = text.place();
    auto low = text.number("a rank", Program::maxRanks - 1);
    if (!low || !text.expect("-"))
      return false;
    auto high = text.number("a rank", Program::maxRanks - 1);
    if (!high)
      return false;
    addPair({RankId(*low), RankId(*high)}, text.rangeFrom(from));
  }
  return true;
}

void HeadReader::addPair(RankPair pair, SourceRange at) {
  auto [low, high] = pair;
  if (low >= high)
    diags.report<diag::IrBadPair>(at, low.value, high.value);
  else if (!pairs.insert({low.value, high.value}).second)
    diags.report<diag::IrTwice>(
        at, fmt::format("the pair {}-{}", low.value, high.value));
  facts.preconnect.push_back(pair);
  pairRanges.push_back(at);
}

// ---- What refers to items behind it ----

/// A site may be called from one that stands behind it.
void HeadReader::checkSites() {
  for (auto [i, at] : llvm::enumerate(siteRanges)) {
    uint32_t caller = program.sites[i + 1].caller.value;
    if (caller >= program.sites.size())
      diags.report<diag::IrNoEntry>(at, "site", caller);
  }
}

void HeadReader::checkPreconnect() {
  for (auto [pair, at] : llvm::zip(facts.preconnect, pairRanges))
    if (pair.high.value >= program.numRanks)
      diags.report<diag::IrNoRank>(at, pair.high.value, program.numRanks);
}

} // namespace

std::optional<Program> ppcc::parseProgram(uint32_t file,
                                          const SourceManager &sources,
                                          DiagnosticEngine &diags) {
  size_t errorsBefore = diags.errorCount();
  Program program;
  Facts facts;
  TextCursor text(file, sources, diags);
  HeadReader(text, program.editHead(), facts, diags).read();
  TextRows(text, sources.name(file), program, diags).read();
  if (diags.errorCount() != errorsBefore)
    return std::nullopt;
  program.setFacts(std::move(facts));
  return program;
}
