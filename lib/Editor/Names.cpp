#include "ppcc/Editor/Names.h"

using namespace ppcc;
using namespace ppcc::editor;

namespace {

/// Words that a name is declared behind, at file level; in a body; and such
/// whose name is seen in what follows only.
constexpr StringRef atFileLevel[] = {"schedule", "fn",       "block",
                                     "rule",     "action",   "model",
                                     "cluster",  "placement"};
constexpr StringRef inBodies[] = {"let", "pipe", "phase", "layer", "part"};
constexpr StringRef ofBodies[] = {"for", "rank", "stage", "link"};

/// Finds the declarations among tokens.
class Finder {
public:
  Finder(StringRef text, ArrayRef<Token> tokens,
         std::vector<Declaration> &declared)
      : text(text), declared(declared) {
    for (const Token &token : tokens)
      if (!token.isComment())
        words.push_back(token);
  }

  void run() {
    for (at = 0; at != words.size(); ++at)
      take();
    while (!open.empty())
      close(text.end());
    endPending(text.end());
  }

private:
  void take() {
    const Token &word = words[at];
    if (word.is("{")) {
      open.push_back({std::move(pending),
                      {},
                      std::exchange(owner, {}),
                      depthOfParentheses});
      pending.clear();
      depthOfParentheses = 0;
      isHead = false;
    } else if (word.is("}")) {
      if (!open.empty())
        close(word.text.end());
    } else if (word.is("(")) {
      ++depthOfParentheses;
    } else if (word.is(")")) {
      depthOfParentheses -= depthOfParentheses != 0;
    } else if (word.is(";") && depthOfParentheses == 0) {
      endPending(word.text.end());
    } else if (word.isWord()) {
      takeWord();
    }
  }

  void takeWord() {
    const Token &word = words[at];
    StringRef name = nameBehind();
    if (isHead && depthOfParentheses == 1) {
      bool begins = words[at - 1].is("(") || words[at - 1].is(",");
      if (begins)
        pending.push_back(declare("parameter", word.text, nullptr));
      return;
    }
    if (name.empty())
      return;
    if (open.empty() && llvm::is_contained(atFileLevel, word.text)) {
      endPending(word.text.begin());
      pending.push_back(declare(word.text, name, text.begin()));
      declared.back().isAtFileLevel = true;
      declared.back().end = text.end();
      isHead = true;
    } else if (!open.empty() && llvm::is_contained(inBodies, word.text)) {
      // `placement` of a schedule, and layers that are used, declare nothing.
      bool declares = word.is("let") || follows("{") || follows("(");
      if (declares)
        open.back().inside.push_back(declare(word.text, name, name.begin()));
      if (follows("{"))
        owner = declared.size() - 1;
    } else if (llvm::is_contained(ofBodies, word.text) && declaresHere()) {
      pending.push_back(declare(word.text, name, nullptr));
    }
  }

  /// The name behind this word, if there is one.
  StringRef nameBehind() const {
    return at + 1 < words.size() && words[at + 1].isWord() ? words[at + 1].text
                                                           : StringRef();
  }
  bool follows(StringRef symbol) const {
    return at + 2 < words.size() && words[at + 2].is(symbol);
  }
  /// `for i in`, `on rank r {`, `stage s on`, `link a, b {`.
  bool declaresHere() const {
    const Token &word = words[at];
    if (word.is("for"))
      return follows("in");
    if (word.is("stage"))
      return follows("on");
    if (word.is("link"))
      return follows(",");
    return at != 0 && words[at - 1].is("on") && follows("{");
  }

  size_t declare(StringRef what, StringRef name, const char *begin) {
    Declaration one;
    one.what = what;
    one.name = name;
    one.begin = begin ? begin : name.begin();
    one.end = text.end();
    declared.push_back(one);
    return declared.size() - 1;
  }

  /// The innermost body ends.
  void close(const char *end) {
    const Body &body = open.back();
    for (size_t name : body.names) {
      declared[name].bodyEnd = end;
      if (!declared[name].isAtFileLevel)
        declared[name].end = end;
    }
    for (size_t name : body.inside)
      declared[name].end = end;
    if (body.owner)
      declared[*body.owner].bodyEnd = end;
    depthOfParentheses = open.back().depthOutside;
    open.pop_back();
    if (open.empty())
      isHead = false;
  }

  /// A statement without a body ends, and with it what only it could see.
  void endPending(const char *end) {
    for (size_t name : pending)
      if (!declared[name].isAtFileLevel)
        declared[name].end = end;
    pending.clear();
    if (open.empty())
      isHead = false;
  }

  /// An open brace, and what ends with it.
  struct Body {
    std::vector<size_t> names, inside; ///< Of its head, and declared in it.
    std::optional<size_t> owner; ///< Whose body it is, but seen outside too.
    unsigned depthOutside;
  };

  StringRef text;
  std::vector<Declaration> &declared;
  std::vector<Token> words;
  std::vector<Body> open;
  std::vector<size_t> pending; ///< Whose body may follow.
  std::optional<size_t> owner; ///< Whose body follows.
  unsigned depthOfParentheses = 0;
  bool isHead = false; ///< Between a declaration of the file and its body.
  size_t at = 0;
};

} // namespace

Names::Names(StringRef text) : text(text), tokens(tokenize(text)) {
  Finder(text, tokens, declared).run();
}

const Declaration *Names::meaning(StringRef word) const {
  const Declaration *innermost = nullptr;
  for (const Declaration &one : declared)
    if (one.name == word && one.isSeenAt(word.begin()) &&
        (!innermost || one.begin >= innermost->begin))
      innermost = &one;
  return innermost;
}

std::vector<StringRef> Names::occurrences(const Declaration &of) const {
  std::vector<StringRef> found;
  for (const auto &[i, token] : llvm::enumerate(tokens)) {
    if (!token.isWord() || token.text != of.name)
      continue;
    // Labels and fields are names of something else.
    bool isLabel = i + 1 < tokens.size() && tokens[i + 1].is(":") && i != 0 &&
                   (tokens[i - 1].is("(") || tokens[i - 1].is(",")) &&
                   token.text.begin() != of.name.begin();
    bool isField = i != 0 && tokens[i - 1].is(".");
    if (!isLabel && !isField && meaning(token.text) == &of)
      found.push_back(token.text);
  }
  return found;
}

StringRef Names::wordAt(size_t offset) const {
  const char *place = text.begin() + std::min(offset, text.size());
  for (const Token &token : tokens)
    if (token.isWord() && token.text.begin() <= place &&
        place <= token.text.end())
      return token.text;
  return {};
}

std::string Names::comment(const Declaration &of) const {
  StringRef above = text.take_front(of.name.begin() - text.begin());
  SmallVector<StringRef, 64> lines;
  above.take_front(above.rfind('\n') + 1).rtrim('\n').split(lines, '\n');
  std::string all;
  size_t first = lines.size();
  while (first != 0 && lines[first - 1].ltrim().starts_with("//"))
    --first;
  for (StringRef line : ArrayRef<StringRef>(lines).drop_front(first)) {
    StringRef words = line.trim().ltrim('/').trim();
    if (!words.starts_with("ppcc:")) // Options, for the language server.
      all += (all.empty() ? "" : " ") + words.str();
  }
  return all;
}
