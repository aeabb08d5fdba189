#include "ppcc/Editor/Editor.h"

using namespace ppcc;
using namespace ppcc::editor;

namespace {

/// A line of the text: its tokens, and where each stands in it.
struct Line {
  StringRef text;
  std::vector<Token> tokens = tokenize(text); // None goes over its end.

  size_t column(const Token &token) const {
    return token.text.begin() - text.begin();
  }
  size_t spacesBefore(size_t i) const {
    return tokens[i].text.begin() - tokens[i - 1].text.end();
  }
};

bool isOpening(const Token &token) {
  return token.is("{") || token.is("(") || token.is("[");
}
bool isClosing(const Token &token) {
  return token.is("}") || token.is(")") || token.is("]");
}

/// Writes the lines anew.
class Formatter {
public:
  Formatter(StringRef text, bool keepsColumns) : keepsColumns(keepsColumns) {
    for (StringRef line : llvm::split(text, '\n'))
      lines.push_back({line});
  }

  std::string run() {
    for (size_t i = 0; i != lines.size(); ++i)
      put(i);
    return std::move(out);
  }

private:
  void put(size_t index) {
    const Line &line = lines[index];
    if (line.tokens.empty()) {
      isAfterEmpty = !out.empty();
      return;
    }
    if (std::exchange(isAfterEmpty, false))
      out += '\n';
    out.append(indentOf(line), ' ');
    for (size_t i = 0; i != line.tokens.size(); ++i) {
      const Token &token = line.tokens[i];
      if (i != 0)
        out.append(gapBefore(index, i), ' ');
      out += token.text;
      follow(token,
             i + 1 == line.tokens.size() ? nullptr : &line.tokens[i + 1]);
    }
    out += '\n';
  }

  size_t indentOf(const Line &line) const {
    const Token &first = line.tokens.front();
    bool closes = isClosing(first) && !open.empty();
    if (!closes && !open.empty() && open.back().column)
      return open.back().column; // Below what stands after the bracket.
    bool goesOn = isInStatement && !first.is("{") && !closes;
    return 2 * (open.size() - closes + goesOn);
  }

  /// Keeps account of brackets and of where statements end.
  void follow(const Token &token, const Token *next) {
    if (token.isComment())
      return;
    if (isOpening(token)) {
      bool isComm = previous && previous->is("comm");
      // Where the next line goes on, if something stands after the bracket.
      size_t column = 0;
      if (!token.is("{") && next && !next->isComment())
        column = out.size() - (out.rfind('\n') + 1);
      open.push_back({token.text.front(), isComm || inComm(), column});
    } else if (isClosing(token) && !open.empty()) {
      open.pop_back();
    }
    bool inBraces = open.empty() || open.back().bracket == '{';
    isInStatement = !(token.is(";") || token.is("{") || token.is("}") ||
                      (!inBraces && (token.is(",") || isOpening(token))));
    if (token.is("?"))
      ++openQuestions;
    else if (token.is(":"))
      openQuestions -= openQuestions != 0;
    else if (token.is(";") || token.is("{") || token.is("}"))
      openQuestions = 0;
    before = previous;
    previous = token;
  }

  bool inComm() const { return !open.empty() && open.back().isComm; }

  /// The spaces between a token of a line and the one before it.
  size_t gapBefore(size_t index, size_t i) const {
    const Line &line = lines[index];
    const Token &left = line.tokens[i - 1], &right = line.tokens[i];
    size_t was = line.spacesBefore(i);
    // `memory -1`, as opposed to `a - 1` and to `a-1`.
    bool isSign = left.is("-") && was == 0 && i > 1 && line.spacesBefore(i - 1);
    size_t wanted = (!isSign && wantsSpace(left, right, was != 0)) ||
                    tokenize((left.text + right.text).str()).size() != 2;
    if (right.isComment())
      wanted = 1;
    // What stands below something else was put there.
    bool isColumn =
        keepsColumns && was > wanted && was > 1 &&
        (standsInColumn(index, i, -1) || standsInColumn(index, i, 1));
    return isColumn ? was : wanted;
  }

  /// Whether a line near by, in this direction, has a token at the same column.
  bool standsInColumn(size_t index, size_t i, int direction) const {
    constexpr int farthest = 4;
    for (int n = 1; n <= farthest; ++n) {
      size_t other = index + size_t(n * direction);
      if (other >= lines.size() || lines[other].tokens.empty())
        return false;
      const Line &there = lines[other];
      const Token &one = lines[index].tokens[i];
      size_t column = lines[index].column(one);
      auto two = std::partition_point(
          there.tokens.begin() + 1, there.tokens.end(),
          [&](const Token &token) { return there.column(token) < column; });
      if (two == there.tokens.end() || there.column(*two) != column)
        continue;
      if (one.text == two->text || (one.isComment() && two->isComment()) ||
          there.spacesBefore(two - there.tokens.begin()) > 1)
        return true;
    }
    return false;
  }

  static bool isBinaryOperator(const Token &token) {
    static constexpr StringRef operators[] = {"+",  "-",  "*", "/", "%",
                                              "==", "!=", "<", ">", "<=",
                                              ">=", "=",  "?", "->"};
    return token.kind == TokenKind::Symbol &&
           llvm::is_contained(operators, token.text);
  }

  /// Words after which a bracket opens an expression, and no arguments.
  static bool isKeyword(const Token &token) {
    static constexpr StringRef words[] = {
        "and",    "or",  "not", "in",   "if", "else",    "while",
        "repeat", "lag", "by",  "when", "on", "require", "overlap"};
    return token.isWord() && llvm::is_contained(words, token.text);
  }

  /// Words after which a bracket may open arguments, or an expression.
  static bool isPlace(const Token &token) {
    static constexpr StringRef words[] = {"rank",         "ranks",  "stage",
                                          "stages",       "slices", "pad",
                                          "microbatches", "to",     "layers"};
    return llvm::is_contained(words, token.text);
  }

  /// Whether a minus after this token has nothing on its left.
  static bool beginsOperand(const Token &token) {
    return isBinaryOperator(token) || token.is("(") || token.is("[") ||
           token.is(",") || token.is(":") || token.is("..") || token.is("{") ||
           token.is(";") || isKeyword(token);
  }

  /// `before` and `previous` are the tokens before `right`.
  bool wantsSpace(const Token &left, const Token &right, bool had) const {
    if (right.isComment())
      return true;
    if (right.is(";") || right.is(",") || right.is(")") || right.is("]") ||
        left.is("(") || left.is("["))
      return false;
    // Names such as ready-time.
    if (inComm() &&
        (left.is("-") || right.is("-") || left.is(":") || right.is(":")))
      return false;
    if (left.is("-") && (!before || beginsOperand(*before)))
      return false;
    if (right.is("(") || right.is("["))
      return left.isWord() && !isKeyword(left) ? had && isPlace(left)
                                               : right.is("(") || had;
    // `mb: 0`, and `a ? b : c`.
    if (right.is(":"))
      return openQuestions != 0;
    if (right.is(".") || left.is("."))
      return had;
    return true;
  }

  struct Bracket {
    char bracket;
    bool isComm;
    size_t column; ///< Of the lines within; 0 for that of their depth.
  };

  const bool keepsColumns;
  std::vector<Line> lines;
  std::vector<Bracket> open;
  std::optional<Token> previous, before;
  unsigned openQuestions = 0; ///< Of the statement: `?` without its `:`.
  bool isInStatement = false, isAfterEmpty = false;
  std::string out;
};

} // namespace

static std::string formatLines(StringRef text) {
  // A space that goes may take a column with it; each time some do. Where that
  // has no end soon, nothing is a column.
  constexpr int maxPasses = 16;
  std::string formatted = Formatter(text, true).run();
  for (int pass = 1;; ++pass) {
    std::string again = Formatter(formatted, pass < maxPasses).run();
    if (again == formatted)
      return formatted;
    formatted = std::move(again);
  }
}

static std::string replaced(StringRef text, StringRef old, StringRef by) {
  SmallVector<StringRef> parts;
  text.split(parts, old);
  return llvm::join(parts, by);
}

std::string ppcc::editor::format(StringRef text) {
  std::string mark = text.consume_front("\xEF\xBB\xBF") ? "\xEF\xBB\xBF" : "";
  if (!text.contains("\r\n"))
    return mark + formatLines(text);
  return mark +
         replaced(formatLines(replaced(text, "\r\n", "\n")), "\n", "\r\n");
}
