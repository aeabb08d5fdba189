#include "ppcc/Editor/Editor.h"

using namespace ppcc;
using namespace ppcc::editor;

namespace {

/// Words that a name is declared after, at file level; in a body; and such
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
      : text(text), declared(declared), words(withoutComments(tokens.vec())) {}

  void run() {
    for (at = 0; at != words.size(); ++at)
      take(words[at]);
    while (!open.empty())
      close(text.end());
    hide(pending, text.end());
  }

private:
  /// What ends with the brace, or the statement, that is open.
  struct Body {
    std::vector<size_t> seen;   ///< Names that nothing after it sees.
    std::vector<size_t> owners; ///< Names whose body it is.
    unsigned depthOutside = 0;
  };

  void take(const Token &word) {
    if (word.is("{")) {
      pending.depthOutside = std::exchange(depthOfParentheses, 0);
      open.push_back(std::exchange(pending, {}));
    } else if (word.is("}")) {
      if (!open.empty())
        close(word.text.end());
    } else if (word.is("(")) {
      ++depthOfParentheses;
    } else if (word.is(")")) {
      depthOfParentheses -= depthOfParentheses != 0;
    } else if (word.is(";") && depthOfParentheses == 0) {
      hide(pending, word.text.end());
    } else if (word.isWord()) {
      takeWord(word);
    }
  }

  void takeWord(const Token &word) {
    bool isHead = open.empty() && !pending.owners.empty();
    if (isHead && depthOfParentheses == 1) {
      if (words[at - 1].is("(") || words[at - 1].is(","))
        pending.seen.push_back(declare("parameter", word.text));
      return;
    }
    StringRef name = nextName();
    if (name.empty())
      return;
    if (open.empty() && llvm::is_contained(atFileLevel, word.text)) {
      hide(pending, word.text.begin());
      pending.owners.push_back(declare(word.text, name));
      declared.back().begin = text.begin();
      declared.back().isAtFileLevel = true;
    } else if (!open.empty() && llvm::is_contained(inBodies, word.text)) {
      // `placement` of a schedule, and layers that are used, declare nothing.
      if (word.is("let") || follows("{") || follows("("))
        open.back().seen.push_back(declare(word.text, name));
      if (follows("{"))
        pending.owners.push_back(declared.size() - 1);
    } else if (llvm::is_contained(ofBodies, word.text) && declaresHere(word)) {
      pending.seen.push_back(declare(word.text, name));
    }
  }

  /// The name after this word, if there is one.
  StringRef nextName() const {
    return at + 1 < words.size() && words[at + 1].isWord() ? words[at + 1].text
                                                           : StringRef();
  }
  bool follows(StringRef symbol) const {
    return at + 2 < words.size() && words[at + 2].is(symbol);
  }
  /// `for i in`, `on rank r {`, `on rank r where`, `stage s on`, `link a, b {`.
  bool declaresHere(const Token &word) const {
    if (word.is("for"))
      return follows("in");
    if (word.is("stage"))
      return follows("on");
    if (word.is("link"))
      return follows(",");
    return at != 0 && words[at - 1].is("on") &&
           (follows("{") || follows("where"));
  }

  size_t declare(StringRef what, StringRef name) {
    declared.push_back({what, name, name.begin(), text.end()});
    return declared.size() - 1;
  }

  /// The innermost body ends.
  void close(const char *end) {
    depthOfParentheses = open.back().depthOutside;
    for (size_t name : open.back().owners)
      declared[name].bodyEnd = end;
    hide(open.back(), end);
    open.pop_back();
  }

  /// What only a body, or a statement that has none, could see ends with it.
  void hide(Body &body, const char *end) {
    for (size_t name : body.seen)
      declared[name].end = end;
    body = {};
  }

  StringRef text;
  std::vector<Declaration> &declared;
  std::vector<Token> words;
  std::vector<Body> open;
  Body pending; ///< Which may follow.
  unsigned depthOfParentheses = 0;
  size_t at = 0;
};

} // namespace

SymbolIndex::SymbolIndex(StringRef text) : text(text), all(tokenize(text)) {
  Finder(text, all, declared).run();
  std::vector<size_t> inOrder(declared.size());
  std::iota(inOrder.begin(), inOrder.end(), 0);
  llvm::stable_sort(inOrder, [&](size_t a, size_t b) {
    return declared[a].begin < declared[b].begin;
  });
  // Scopes nest: what is seen no more is above what still is.
  StringMap<std::vector<size_t>> open;
  auto next = inOrder.begin();
  for (const Token &token : all) {
    const char *place = token.text.begin();
    for (; next != inOrder.end() && declared[*next].begin <= place; ++next)
      open[declared[*next].name].push_back(*next);
    auto found = token.isWord() ? open.find(token.text) : open.end();
    if (found == open.end())
      continue;
    std::vector<size_t> &seen = found->second;
    while (!seen.empty() && !declared[seen.back()].isSeenAt(place))
      seen.pop_back();
    if (!seen.empty())
      meanings[place] = seen.back();
  }
}

const Declaration *SymbolIndex::atFileLevel(StringRef name) const {
  auto found = llvm::find_if(declared, [&](const Declaration &one) {
    return one.isAtFileLevel && one.name == name;
  });
  return found == declared.end() ? nullptr : &*found;
}

const Declaration *SymbolIndex::meaning(StringRef word) const {
  auto found = meanings.find(word.begin());
  return found == meanings.end() ? nullptr : &declared[found->second];
}

std::vector<StringRef> SymbolIndex::occurrences(const Declaration &of) const {
  std::vector<StringRef> found;
  for (const auto &[i, token] : llvm::enumerate(all)) {
    if (!token.isWord() || token.text != of.name)
      continue;
    // Labels and fields are names of something else.
    bool isLabel = i + 1 < all.size() && all[i + 1].is(":") && i != 0 &&
                   (all[i - 1].is("(") || all[i - 1].is(",")) &&
                   token.text.begin() != of.name.begin();
    bool isField = i != 0 && all[i - 1].is(".");
    if (!isLabel && !isField && meaning(token.text) == &of)
      found.push_back(token.text);
  }
  return found;
}

StringRef SymbolIndex::wordAt(size_t offset) const {
  const char *place = text.begin() + std::min(offset, text.size());
  for (const Token &token : all)
    if (token.isWord() && token.text.begin() <= place &&
        place <= token.text.end())
      return token.text;
  return {};
}

std::string SymbolIndex::comment(const Declaration &of) const {
  StringRef above = text.take_front(of.name.begin() - text.begin());
  above = above.take_front(above.rfind('\n') + 1).rtrim('\n');
  SmallVector<StringRef> lines; // The last first.
  while (true) {
    size_t begin = above.rfind('\n') + 1;
    StringRef line = above.drop_front(begin).trim();
    if (!line.starts_with("//"))
      break;
    lines.push_back(line.ltrim('/').trim());
    above = above.take_front(begin).drop_back(begin != 0);
  }
  llvm::erase_if(lines, [](StringRef line) { // Options, for the server.
    return line.empty() || line.starts_with("ppcc:");
  });
  return llvm::join(llvm::reverse(lines), " ");
}
