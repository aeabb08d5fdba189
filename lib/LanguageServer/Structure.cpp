// What a text looks like: its outline, folds, colors and style.
#include "Server.h"

using namespace ppcc;
using namespace ppcc::lsp;
using editor::Declaration;
using editor::Token;
namespace json = llvm::json;

json::Value Server::symbols(const DocumentParams &params) {
  const Text &text = *params.document.text;
  json::Array all;
  for (const Declaration &one : text.names.declarations()) {
    bool isPart =
        llvm::is_contained({"phase", "pipe", "layer", "part"}, one.what);
    if (!one.isAtFileLevel && !isPart)
      continue;
    const char *end = one.bodyEnd ? one.bodyEnd : one.name.end();
    constexpr int function = 12, field = 8;
    all.push_back(json::Object{
        {"name", one.name},
        {"detail", one.what},
        {"kind", isPart ? field : function},
        {"range",
         text.range(StringRef(one.name.begin(), end - one.name.begin()))},
        {"selectionRange", text.range(one.name)}});
  }
  return all;
}

/// One of tokenTypes, or nothing.
static StringRef tokenType(const editor::Token &token, StringRef what) {
  switch (token.kind) {
  case editor::TokenKind::Comment:
    return "comment";
  case editor::TokenKind::String:
    return "string";
  case editor::TokenKind::Number:
    return "number";
  case editor::TokenKind::Symbol:
    return StringRef("(){}[],;:").contains(token.text) ? "" : "operator";
  case editor::TokenKind::Word:
    break;
  }
  const editor::Word *word =
      what.empty() ? editor::findWord(token.text) : nullptr;
  return llvm::StringSwitch<StringRef>(word ? word->what : what)
      .Case("keyword", "keyword")
      .Cases("function", "counter", "fn", "function")
      .Cases("block", "rule", "macro")
      .Cases("let", "loop", "for", "variable")
      .Cases("placement", "pipe", "type")
      .Cases("value", "parameter", "parameter")
      .Cases("schedule", "model", "cluster", "class")
      .Case("action", "enumMember")
      .Default("");
}

json::Value Server::semanticTokens(const DocumentParams &params) {
  const Text &text = *params.document.text;
  const Analysis &known = analysis(params.document);
  std::map<size_t, const sema::Observer::Name *> named;
  for (const auto &use : known.observer.uses)
    if (auto at = known.offsetIn(use.at.begin))
      if (const auto *name = known.nameAt(use.declared.begin))
        named[*at] = name;
  json::Array data;
  int64_t line = 0, column = 0;
  for (const editor::Token &token : text.names.tokens()) {
    size_t begin = text.offset(token.text);
    auto name = named.find(begin);
    StringRef type =
        tokenType(token, name != named.end() ? name->second->what : "");
    if (type.empty())
      continue;
    json::Object at = text.position(begin);
    int64_t itsLine = *at.getInteger("line");
    int64_t itsColumn = *at.getInteger("character");
    for (int64_t number :
         {itsLine - line, itsLine == line ? itsColumn - column : itsColumn,
          int64_t(utf16Length(token.text)),
          int64_t(llvm::find(tokenTypes, type) - tokenTypes), int64_t(0)})
      data.push_back(number);
    line = itsLine;
    column = itsColumn;
  }
  return json::Object{{"data", std::move(data)}};
}

json::Value Server::folds(const DocumentParams &params) {
  const Text &text = *params.document.text;
  json::Array all;
  std::vector<int64_t> begins;
  for (const Token &token : text.names.tokens()) {
    if (!token.is("{") && !token.is("}"))
      continue;
    int64_t line = *text.position(text.offset(token.text)).getInteger("line");
    if (token.is("{")) {
      begins.push_back(line);
    } else if (!begins.empty()) {
      if (int64_t begin = begins.back(); line > begin + 1)
        all.push_back(
            json::Object{{"startLine", begin}, {"endLine", line - 1}});
      begins.pop_back();
    }
  }
  return all;
}

json::Value Server::formatting(const DocumentParams &params) {
  const Text &text = *params.document.text;
  std::string formatted = editor::format(text.all());
  json::Array edits;
  if (formatted != text.all())
    edits.push_back(edit(text.range(text.all()), std::move(formatted)));
  return edits;
}
