// Reads a program from text: the head, item by item, and then the actions.
#include "TextKinds.h"
#include "TextNodes.h"
#include "TextPipes.h"
#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Transport.h"

using namespace ppcc;

namespace {

/// Everything but the actions.
class HeadReader : TextHead {
public:
  HeadReader(const TextHead &in, Facts &facts)
      : TextHead(in), facts(facts), costs(in), kinds(in), nodes(in), pipes(in) {
    for (StringRef item : costItems())
      keys.push_back({item, [this, item] { costs.setting(item); }});
    llvm::append_range(keys, std::vector<Key>{
#define HEAD(Item, Text, Json, Need, Of) {Text, [this] { read##Item(); }},
#include "ppcc/IR/Head.def"
                                 {"pipe", [this] { pipes.pipe(); }},
                                 {"skip", [this] { pipes.skip(); }},
                                 {"gap", [this] { pipes.gap(); }},
                                 {"carry", [this] { pipes.carry(); }},
                                 {"graph", [this] { nodes.graph(); }},
                                 {"graphs", [this] { nodes.use(); }},
                                 {"pattern", [this] { nodes.pattern(); }},
                                 {"action", [this] { kinds.action(); }},
                             });
  }

  void read() {
    size_t errorsBefore = in.diags.errorCount();
    nameRange = in.range(in.peekWord());
    if (!in.expectWord("program"))
      return in.stop();
    if (in.peek('"'))
      head.name = in.string("the program's name");
    in.recover();
    if (!in.expect("{"))
      return in.stop();
    bool closed = false;
    while (!in.diags.saturated() && !(closed = in.accept("}")) && !in.atEnd())
      if (!item(keys))
        in.skipItem();
    if (!closed && !in.diags.saturated())
      in.expected("`}`, the end of `program`");
    isGood = in.diags.errorCount() == errorsBefore;
  }

  void check() {
    checkSites();
    nodes.check();
    kinds.check();
    pipes.check(ranksGiven);
    for (auto [pair, at] : llvm::zip(facts.preconnect, pairRanges))
      if (pair.high.value >= head.numRanks)
        in.diags.report<diag::IrNoRank>(at, pair.high.value, head.numRanks);
    checkLayout(head, layoutRange, in.diags);
    costs.check();
    if (isGood && head.numRanks == 0)
      in.diags.report<diag::IrExpected>(
          nameRange, "a rank at least: say `ranks` or give stages a place");
  }

  std::vector<std::string> transports; ///< Those under which it is proven.

private:
  struct Key {
    StringRef name;
    std::function<void()> read; ///< Starts after the key.
  };

  /// False, after a report, when the rest of it was given up.
  bool item(ArrayRef<Key> keys) {
    StringRef word = in.takeKey();
    if (word.empty()) {
      in.expected("a key, such as `pipe`");
      in.takeOne();
    } else if (auto *key = findBy(keys, word, &Key::name)) {
      key->read();
    } else {
      in.refuse<diag::IrUnknownKey>(in.keyRange(), word,
                                    didYouMean(word, keys, &Key::name));
    }
    return in.ok();
  }

  /// A site may be called from one that stands after it.
  void checkSites() {
    for (auto [i, at] : llvm::enumerate(siteRanges)) {
      uint32_t caller = head.sites[i + 1].caller.value;
      if (caller >= head.sites.size())
        in.diags.report<diag::IrUndefined>(at, "site", caller);
    }
  }

  // ---- Items ----

  void readParams() {
    ProgramParam param;
    param.name = in.wordOrString("the name of a parameter");
    in.expect(":");
    param.type = in.wordOrString("the type of a parameter");
    in.expect("=");
    param.value = in.wordOrString("the value of a parameter");
    if (in.ok())
      head.params.push_back(std::move(param));
  }

  void readRanks() {
    if (std::exchange(ranksGiven, true))
      return in.refuse<diag::IrDuplicate>(in.keyRange(), "`ranks`");
    in.skipSpace();
    SourceRange at = in.here();
    uint32_t ranks = in.number("the number of ranks", Program::maxRanks);
    if (ranks == 0)
      in.report<diag::IrExpected>(at, "a rank at least");
    head.numRanks = ranks;
  }

  void readBackward() {
    head.hasBackward = in.acceptWord("true");
    if (!head.hasBackward)
      in.expectWord("false");
  }

  /// The number of a file or site, which are counted.
  void index(StringRef what, size_t expected) {
    uint32_t index = in.number(fmt::format("a {}", what));
    if (index != expected)
      in.report<diag::IrOutOfOrder>(in.keyRange(), what, index, expected);
  }

  void readFiles() {
    index("file", head.files.size());
    std::string name = in.string("the name of a file");
    if (in.ok())
      head.files.push_back({std::move(name), false});
  }

  void readSites() {
    index("site", head.sites.size());
    Site site;
    site.file = in.number("a file");
    in.expect(":");
    site.line = in.number("a line");
    in.expect(":");
    site.column = in.number("a column");
    if (in.acceptWord("in"))
      site.caller = SiteId(in.number("a site"));
    if (site.file >= head.files.size())
      in.refuse<diag::IrUndefined>(in.keyRange(), "file", site.file);
    if (!in.ok())
      return;
    head.sites.push_back(site);
    siteRanges.push_back(in.keyRange());
  }

  /// The layers of each stage: letters, and a bar between two stages.
  void readLayout() {
    in.skipSpace();
    const char *from = in.place();
    std::string layers = in.string("the layers of the stages");
    if (!in.ok())
      return;
    layoutRange = in.rangeFrom(from);
    if (!head.stageLayers.empty())
      in.report<diag::IrDuplicate>(in.keyRange(), "`layout`");
    if (!llvm::all_of(layers,
                      [](char c) { return llvm::isAlpha(c) || c == '|'; }))
      return in.expected(layoutRange, "letters and bars");
    head.stageLayers.clear();
    for (StringRef stage : llvm::split(layers, '|'))
      head.stageLayers.push_back(stage.str());
  }

  void readUnits() {
    if (!head.units.words().empty())
      in.report<diag::IrDuplicate>(in.keyRange(), "`units`");
    in.list([&] {
      SourceRange at;
      StringRef word = in.takeWord(at);
      if (!llvm::is_contained(Units::allWords(), word))
        in.expected(at, llvm::join(Units::allWords(), ", "));
      else if (!head.units.take(word))
        in.report<diag::IrDuplicate>(at, fmt::format("`{}`", word));
    });
  }

  void readCalls() {
    auto style = in.word(
        findCallStyle, llvm::join(llvm::drop_begin(callStyleNames()), " or "));
    if (!style)
      return;
    if (head.calls != CallStyle::None)
      in.report<diag::IrDuplicate>(in.keyRange(), "`calls`");
    head.calls = *style;
  }

  /// Whoever wrote the text could write this too: passes prove it, nothing
  /// else.
  void readProven() {
    in.list([&] {
      StringRef name = in.takeWhile(
          [](char c) { return TextReader::isWordChar(c) || c == ':'; });
      if (name.empty())
        return in.expected("the name of a transport");
      if (!findTransport(name))
        in.report<diag::IrUnknownTransport>(in.range(name), name.take_front(40),
                                            didYouMean(name, transportNames()));
      else if (llvm::is_contained(transports, name))
        in.report<diag::IrDuplicate>(in.range(name), fmt::format("`{}`", name));
      transports.push_back(name.str());
    });
  }

  void readPreconnect() {
    if (!facts.preconnect.empty())
      in.report<diag::IrDuplicate>(in.keyRange(), "`preconnect`");
    in.list([&] {
      const char *from = in.place();
      RankId low(in.number("a rank", Program::maxRanks - 1));
      in.expect("-");
      RankId high(in.number("a rank", Program::maxRanks - 1));
      if (in.ok())
        addPair({low, high}, in.rangeFrom(from));
    });
  }

  void addPair(RankPair pair, SourceRange at) {
    auto [low, high] = pair;
    if (low >= high)
      in.report<diag::IrBadPair>(at, low.value, high.value);
    else if (!pairs.insert({low.value, high.value}).second)
      in.report<diag::IrDuplicate>(
          at, fmt::format("the pair {}-{}", low.value, high.value));
    facts.preconnect.push_back(pair);
    pairRanges.push_back(at);
  }

  Facts &facts;
  TextCosts costs;
  TextKinds kinds;
  TextNodes nodes;
  TextPipes pipes;
  std::vector<Key> keys;
  bool isGood = false;     ///< The items of the head.
  bool ranksGiven = false; ///< The text has the key `ranks`.
  SourceRange nameRange;
  SourceRange layoutRange;
  std::vector<SourceRange> siteRanges; ///< The keys of those read so far.
  std::vector<SourceRange> pairRanges; ///< Of `preconnect`.
  DenseSet<std::pair<uint32_t, uint32_t>> pairs;
};

} // namespace

std::optional<Program> ppcc::parseProgram(uint32_t file,
                                          const SourceManager &sources,
                                          DiagnosticEngine &diags) {
  TextReader text(file, sources, diags);
  size_t errorsBefore = diags.errorCount();
  Program program;
  Facts facts;
  HeadReader head({text, program.editHead()}, facts);
  head.read();
  head.check();
  readRows(text, sources.name(file), program, diags);
  if (diags.errorCount() != errorsBefore)
    return std::nullopt;
  program.setFacts(std::move(facts));
  return program;
}
