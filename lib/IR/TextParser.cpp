// Reads a program from text: the head, item by item, and then the actions.
#include "TextSection.h"
#include "ppcc/Basic/Diagnostics/IR.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Text.h"
#include "ppcc/IR/Transport.h"
#include "ppcc/Support/Suggest.h"

using namespace ppcc;

namespace {

/// Everything but the actions: items of the sections, and some of its own.
class HeadReader : TextSection {
public:
  explicit HeadReader(HeadText &in) : TextSection(in) {
    keys = {
#define HEAD(Item, Text, Json, Need) {Text, [this] { read##Item(); }},
#include "ppcc/IR/Head.def"
    };
  }

  void read() {
    size_t errorsBefore = diags.errorCount();
    SourceRange nameRange = text.range(text.peekWord());
    if (!text.expectWord("program"))
      return text.stop();
    if (text.peek('"'))
      head.name = text.string("the program's name").value_or("");
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
    if (isGood && head.numRanks == 0)
      diags.report<diag::IrExpected>(
          nameRange, "a rank at least: say `ranks` or give stages a place");
  }

private:
  bool item() {
    StringRef word = text.takeKey();
    if (word.empty()) {
      text.expected("a key, such as `pipe`");
      text.takeOne();
      return false;
    }
    std::vector<StringRef> names;
    for (TextSection *section : sections)
      for (const Key &key : section->keys) {
        if (key.name == word)
          return section->read(key);
        names.push_back(key.name);
      }
    return diags.report<diag::IrUnknownKey>(text.keyRange(), word,
                                            didYouMean(word, names));
  }

  void check() override {
    checkSites();
    for (TextSection *section : {nodes.get(), kinds.get(), pipes.get()})
      section->check();
    for (auto [pair, at] : llvm::zip(in.facts.preconnect, pairRanges))
      if (pair.high.value >= head.numRanks)
        diags.report<diag::IrNoRank>(at, pair.high.value, head.numRanks);
    checkLayout(head, layoutRange, diags);
    costs->check();
  }

  /// A site may be called from one that stands behind it.
  void checkSites() {
    for (auto [i, at] : llvm::enumerate(siteRanges)) {
      uint32_t caller = head.sites[i + 1].caller.value;
      if (caller >= head.sites.size())
        diags.report<diag::IrNoEntry>(at, "site", caller);
    }
  }

  // ---- Items ----

  void readParams() {
    ProgramParam param;
    param.name = wordOrString("the name of a parameter");
    expect(":");
    param.type = wordOrString("the type of a parameter");
    expect("=");
    param.value = wordOrString("the value of a parameter");
    if (going)
      head.params.push_back(std::move(param));
  }

  void readRanks() {
    if (std::exchange(in.ranksGiven, true))
      return refuse<diag::IrTwice>(text.keyRange(), "`ranks`");
    text.skipSpace();
    SourceRange at = text.here();
    uint32_t ranks = number("the number of ranks", Program::maxRanks);
    if (ranks == 0)
      report<diag::IrExpected>(at, "a rank at least");
    head.numRanks = ranks;
  }

  void readBackward() {
    head.hasBackward = text.acceptWord("true");
    if (!head.hasBackward)
      expectWord("false");
  }

  /// The number of a file or site, which are counted.
  void index(StringRef what, size_t expected) {
    uint32_t index = number(fmt::format("a {}", what));
    if (index != expected)
      report<diag::IrOutOfOrder>(text.keyRange(), what, index, expected);
  }

  void readFiles() {
    index("file", head.files.size());
    std::string name = string("the name of a file");
    if (going)
      head.files.push_back({std::move(name), false});
  }

  void readSites() {
    index("site", head.sites.size());
    Site site;
    site.file = number("a file");
    expect(":");
    site.line = number("a line");
    expect(":");
    site.column = number("a column");
    if (acceptWord("in"))
      site.caller = SiteId(number("a site"));
    if (site.file >= head.files.size())
      refuse<diag::IrNoEntry>(text.keyRange(), "file", site.file);
    if (!going)
      return;
    head.sites.push_back(site);
    siteRanges.push_back(text.keyRange());
  }

  /// The layers of each stage: letters, and a bar between two stages.
  void readLayout() {
    text.skipSpace();
    const char *from = text.place();
    std::string layers = string("the layers of the stages");
    if (!going)
      return;
    layoutRange = text.rangeFrom(from);
    if (!head.stageLayers.empty())
      report<diag::IrTwice>(text.keyRange(), "`layout`");
    if (!llvm::all_of(layers,
                      [](char c) { return llvm::isAlpha(c) || c == '|'; }))
      return expected(layoutRange, "letters and bars");
    head.stageLayers.clear();
    for (StringRef stage : llvm::split(layers, '|'))
      head.stageLayers.push_back(stage.str());
  }

  void readCalls() {
    StringRef word = text.peekWord();
    auto style = findCallStyle(word);
    if (!style)
      return expected(llvm::join(llvm::drop_begin(callStyleNames()), " or "));
    text.take(word);
    if (head.calls != CallStyle::None)
      report<diag::IrTwice>(text.keyRange(), "`calls`");
    head.calls = *style;
  }

  /// Whoever wrote the text could write this too: passes prove it, nothing
  /// else.
  void readProven() {
    std::vector<StringRef> seen;
    list([&] {
      StringRef name = text.takeWhile(
          [](char c) { return TextCursor::isWordChar(c) || c == ':'; });
      if (name.empty())
        return expected("the name of a transport");
      if (!findTransport(name))
        report<diag::IrUnknownTransport>(text.range(name), name.take_front(40),
                                         didYouMean(name, transportNames()));
      else if (llvm::is_contained(seen, name))
        report<diag::IrTwice>(text.range(name), fmt::format("`{}`", name));
      seen.push_back(name);
    });
  }

  void readPreconnect() {
    if (!in.facts.preconnect.empty())
      report<diag::IrTwice>(text.keyRange(), "`preconnect`");
    list([&] {
      const char *from = text.place();
      RankId low(number("a rank", Program::maxRanks - 1));
      expect("-");
      RankId high(number("a rank", Program::maxRanks - 1));
      if (going)
        addPair({low, high}, text.rangeFrom(from));
    });
  }

  void addPair(RankPair pair, SourceRange at) {
    auto [low, high] = pair;
    if (low >= high)
      report<diag::IrBadPair>(at, low.value, high.value);
    else if (!pairs.insert({low.value, high.value}).second)
      report<diag::IrTwice>(
          at, fmt::format("the pair {}-{}", low.value, high.value));
    in.facts.preconnect.push_back(pair);
    pairRanges.push_back(at);
  }

  std::unique_ptr<TextSection> costs = textCosts(in), pipes = textPipes(in),
                               nodes = textNodes(in), kinds = textKinds(in);
  std::array<TextSection *, 5> sections = {costs.get(), this, pipes.get(),
                                           nodes.get(), kinds.get()};
  SourceRange layoutRange;
  std::vector<SourceRange> siteRanges; ///< The keys of those read so far.
  std::vector<SourceRange> pairRanges; ///< Of `preconnect`.
  DenseSet<std::pair<uint32_t, uint32_t>> pairs;
};

} // namespace

std::optional<Program> ppcc::parseProgram(uint32_t file,
                                          const SourceManager &sources,
                                          DiagnosticEngine &diags) {
  size_t errorsBefore = diags.errorCount();
  Program program;
  Facts facts;
  TextCursor text(file, sources, diags);
  HeadText head{text, program.editHead(), facts, diags};
  HeadReader(head).read();
  readRows(text, sources.name(file), program, diags);
  if (diags.errorCount() != errorsBefore)
    return std::nullopt;
  program.setFacts(std::move(facts));
  return program;
}
