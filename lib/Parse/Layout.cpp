// Reads the layers of each stage.
#include "Lexing.h"
#include "ppcc/Basic/Diagnostics/Syntax.h"
#include "ppcc/Parse/Parser.h"

#include "LayoutLexer.h"
#include "LayoutParser.h"

using namespace ppcc;
using antlr4::Token;
using grammar::LayoutLexer;
using grammar::LayoutParser;

namespace {

/// A pipe has no more stages, and no list of layers is longer.
constexpr size_t maxStages = 0xFFFE, maxLayers = size_t(1) << 20;

class LayoutReader : antlr4::BaseErrorListener {
public:
  LayoutReader(StringRef text, SourceLoc begin, DiagnosticEngine &diags)
      : text(text), begin(begin), diags(diags) {}

  std::optional<std::vector<std::string>> read() {
    size_t errorsBefore = diags.errorCount();
    if (size_t other = firstForeignByte(); other != StringRef::npos)
      reportAt(other, other + 1);
    if (diags.errorCount() == errorsBefore)
      parse();
    if (diags.errorCount() != errorsBefore)
      return std::nullopt;
    return std::move(stages);
  }

private:
  SourceRange range(size_t first, size_t end) const {
    return {begin.advanced(first), begin.advanced(end)};
  }
  void reportAt(size_t first, size_t end) {
    bool atEnd = first >= text.size();
    diags.report<diag::LayoutSyntax>(
        range(first, std::max(end, first + 1)),
        atEnd ? std::string("end")
              : fmt::format("`{}`", text.slice(first, end)));
  }

  /// The first byte that is not ASCII, or opens too deep a nesting. Behind this
  /// check, code points are bytes and the parser's recursion is bounded.
  size_t firstForeignByte() const {
    unsigned depth = 0;
    for (size_t i = 0; i != text.size(); ++i) {
      depth += text[i] == '(';
      depth -= text[i] == ')' && depth != 0;
      if (static_cast<unsigned char>(text[i]) > 0x7F || depth > maxNesting)
        return i;
    }
    return StringRef::npos;
  }

  void parse() {
    antlr4::ANTLRInputStream input(text.str());
    LayoutLexer lexer(&input);
    lexer.removeErrorListeners();
    antlr4::CommonTokenStream stream(&lexer);
    LayoutParser parser(&stream);
    parser.removeErrorListeners();
    parser.addErrorListener(this);
    auto *tree = parser.layout();
    if (parser.getNumberOfSyntaxErrors() == 0)
      take(tree->part());
  }

  void syntaxError(antlr4::Recognizer *, Token *token, size_t, size_t,
                   const std::string &, std::exception_ptr) override {
    if (token->getType() == Token::EOF)
      reportAt(text.size(), text.size());
    else
      reportAt(token->getStartIndex(), token->getStopIndex() + 1);
  }

  /// False when the layout has become too large.
  bool take(const std::vector<LayoutParser::PartContext *> &parts) {
    for (LayoutParser::PartContext *part : parts) {
      size_t times = timesOf(part->INT());
      for (size_t i = 0; i != times; ++i) {
        size_t before = layers + stages.size();
        if (part->LETTER()) {
          stages.back() += part->LETTER()->getText();
          ++layers;
        } else if (part->BAR()) {
          stages.emplace_back();
        } else if (!take(part->part())) {
          return false;
        }
        if (layers > maxLayers || stages.size() > maxStages)
          return tooLarge(part);
        if (layers + stages.size() == before)
          break; // There is nothing in it, however often.
      }
    }
    return true;
  }

  bool tooLarge(LayoutParser::PartContext *part) {
    bool isLayers = layers > maxLayers;
    return diags.report<diag::LayoutTooLarge>(
        range(part->getStart()->getStartIndex(),
              part->getStop()->getStopIndex() + 1),
        isLayers ? maxLayers : maxStages, isLayers ? "layers" : "stages");
  }

  /// Numbers of too many digits are larger than every limit, too.
  static size_t timesOf(antlr4::tree::TerminalNode *repeat) {
    size_t times = 1;
    if (repeat && StringRef(repeat->getText()).getAsInteger(10, times))
      return SIZE_MAX;
    return times;
  }

  StringRef text;
  SourceLoc begin;
  DiagnosticEngine &diags;
  std::vector<std::string> stages{""};
  size_t layers = 0;
};

} // namespace

std::optional<std::vector<std::string>>
ppcc::parseLayout(StringRef text, SourceLoc begin, DiagnosticEngine &diags) {
  return LayoutReader(text, begin, diags).read();
}
