// What helps to write a schedule: completion, signatures, corrections, folds
// and the style.
#include "LspServer.h"
#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Editor/Format.h"
#include "ppcc/Editor/Words.h"

#include "llvm/ADT/StringSet.h"

using namespace ppcc;
using namespace ppcc::lsp;
using editor::Declaration;
using editor::Names;
using editor::Token;
namespace json = llvm::json;

namespace {

/// The call that a place stands in.
struct Call {
  StringRef callee; ///< Within the text.
  size_t argument = 0;
};

/// The tokens before a byte, without comments, and without the word that is
/// being written there.
std::vector<Token> tokensBefore(StringRef text, size_t offset) {
  StringRef before = text.take_front(offset);
  while (!before.empty() &&
         (llvm::isAlnum(before.back()) || before.back() == '_'))
    before = before.drop_back();
  std::vector<Token> tokens = editor::tokenize(before);
  llvm::erase_if(tokens, [](const Token &token) { return token.isComment(); });
  return tokens;
}

std::optional<Call> callAround(ArrayRef<Token> before) {
  Call call;
  unsigned depth = 0;
  for (size_t i = before.size(); i-- > 1;) {
    const Token &token = before[i];
    if (token.is(";") || token.is("{") || token.is("}"))
      return std::nullopt;
    if (token.is(")") || token.is("]"))
      ++depth;
    else if (token.is(",") && depth == 0)
      ++call.argument;
    else if ((token.is("(") || token.is("[")) && depth-- == 0) {
      if (!token.is("(") || !before[i - 1].isWord())
        return std::nullopt;
      call.callee = before[i - 1].text;
      return call;
    }
  }
  return std::nullopt;
}

/// What stands in the brackets behind a name, cut at commas: `a`, `b: int = 2`.
std::vector<StringRef> parametersIn(StringRef behindName) {
  std::vector<StringRef> all;
  behindName = behindName.ltrim();
  if (!behindName.consume_front("("))
    return all;
  unsigned depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i != behindName.size(); ++i) {
    char c = behindName[i];
    bool isEnd = depth == 0 && (c == ')' || c == ',');
    if (isEnd) {
      if (StringRef one = behindName.slice(begin, i).trim(); !one.empty())
        all.push_back(one);
      begin = i + 1;
      if (c == ')')
        break;
    } else if (c == '(' || c == '[') {
      ++depth;
    } else if (c == ')' || c == ']') {
      --depth;
    }
  }
  return all;
}

/// Kinds of completions in the protocol.
enum : int {
  Function = 3,
  Field = 5,
  Variable = 6,
  Class = 7,
  File = 17,
  Keyword = 14,
  Value = 12,
  Constant = 21,
};

/// A list of completions, each once, the nearest first.
class Items {
public:
  void add(StringRef label, int kind, StringRef detail,
           StringRef documentation = "", json::Array edits = {}) {
    if (!seen.insert(label).second)
      return;
    // An array of the protocol outlives the texts.
    json::Object item{{"label", label.str()},
                      {"kind", kind},
                      {"detail", detail.str()},
                      {"sortText", fmt::format("{:04}", all.size())}};
    if (!documentation.empty())
      item["documentation"] = documentation.str();
    if (!edits.empty())
      item["additionalTextEdits"] = std::move(edits);
    all.push_back(std::move(item));
  }
  json::Array all;

private:
  llvm::StringSet<> seen;
};

} // namespace

json::Value Server::completion(Params params) {
  Items items;
  TextPtr text = textOf(params);
  if (!text)
    return std::move(items.all);
  std::string uri = uriIn(params);
  size_t offset = text->offset(params.getObject("position"));
  std::vector<Token> before = tokensBefore(text->all(), offset);
  auto last = [&](size_t i) {
    return i < before.size() ? before[before.size() - 1 - i].text : StringRef();
  };
  auto files = imports(uri, *text);

  // Inside `import "`.
  if (!before.empty() && last(0).starts_with("\"") && last(1) == "import") {
    for (const LibraryFile &file : scheduleLibrary())
      items.add(file.name, File, "library", file.summary());
    return std::move(items.all);
  }
  // Behind words that something of a table follows.
  sema::CommWords comm = commWords();
  ArrayRef<StringRef> ofTable = llvm::StringSwitch<ArrayRef<StringRef>>(last(0))
                                    .Case("transport", comm.transports)
                                    .Case("order", comm.orders)
                                    .Case("fuse", comm.fusions)
                                    .Case("calls", comm.calls)
                                    .Default({});
  if (!ofTable.empty()) {
    for (StringRef word : ofTable)
      items.add(word, Value, last(0));
    return std::move(items.all);
  }
  /// What files declare with a word, the text's own and those that it imports.
  auto declaredWith = [&](StringRef what, int kind) {
    auto from = [&](const Text &of, StringRef where) {
      Names names(of.all());
      for (const Declaration &one : names.declarations())
        if (one.isAtFileLevel && one.what == what)
          items.add(one.name, kind, where, names.comment(one));
    };
    from(*text, what);
    for (const auto &[other, theirs] : files)
      from(*theirs, StringRef(other).rsplit('/').second);
  };
  /// The same of the library, with the import that is missing.
  auto inLibrary = [&](StringRef what, int kind) {
    size_t top = text->importPlace();
    for (const LibraryFile &file : scheduleLibrary()) {
      Names names(file.text);
      for (const Declaration &one : names.declarations())
        if (one.isAtFileLevel && one.what == what) {
          json::Array edits;
          edits.push_back(json::Object{
              {"range", text->range(top, top)},
              {"newText", "import \"" + file.name.str() + "\";\n"}});
          items.add(one.name, kind, file.name, names.comment(one),
                    std::move(edits));
        }
    }
  };
  for (auto [word, what] : {std::pair<StringRef, StringRef>{"with", "rule"},
                            {"placement", "placement"},
                            {"import", "schedule"}})
    if (last(0) == word) {
      declaredWith(what, Function);
      inLibrary(what, Function);
      return std::move(items.all);
    }
  if (last(0) == ":" && before.size() > 1 && !callAround(before)) {
    for (StringRef type : {"int", "bool", "float", "pipe", "part", "int[]"})
      items.add(type, Class, "type");
    return std::move(items.all);
  }

  bool behindBracket = last(0) == "(" || last(0) == ",";
  Names names(text->all());
  const char *place = text->all().begin() + offset;
  if (auto call = callAround(before); call && behindBracket) {
    Meaning callee = meaningOf(uri, *text, call->callee);
    const editor::Word *word = editor::findWord(call->callee);
    bool isAction = callee.what == "action" || (word && word->what == "action");
    if (isAction) {
      int64_t chunks = documents.at(uri).result.chunks;
      for (int64_t chunk = 0; chunk < std::min<int64_t>(chunks, 64); ++chunk)
        items.add(std::to_string(chunk), Value, "chunk");
      for (const Declaration &one : names.declarations())
        if (one.what == "pipe" && one.isSeenAt(place))
          items.add(one.name, Field, "pipe");
      items.add("mb:", Field, "the microbatch");
    } else if (word && word->what == "counter") {
      for (const editor::Word &one : editor::words())
        if (one.what == "action" && one.name.size() == 1)
          items.add(one.name, Constant, "action", one.text);
    } else if (callee.text) {
      bool takesLabels = callee.what == "rule" || callee.what == "schedule" ||
                         last(1) == call->callee;
      for (StringRef param : parametersIn(
               callee.text->all().drop_front(callee.begin + callee.size)))
        if (takesLabels && callee.what != "fn" && callee.what != "function" &&
            callee.what != "block")
          items.add(param.take_while([](char c) {
                           return llvm::isAlnum(c) || c == '_';
                         }).str() +
                        ":",
                    Field, param);
    }
  }
  const Analysis &known = analysis(uri);
  for (const Declaration &one : llvm::reverse(names.declarations()))
    if (one.isSeenAt(place)) {
      std::string detail = one.what.str();
      for (const auto &[raw, name] : known.observer.names)
        if (auto at = known.offsetIn(name.declared.begin);
            at && text->all().begin() + *at == one.name.begin() &&
            !name.type.empty())
          detail += ": " + name.type.str();
      items.add(one.name, one.isAtFileLevel ? Function : Variable, detail,
                names.comment(one));
    }
  for (const auto &[other, theirs] : files) {
    Names others(theirs->all());
    for (const Declaration &one : others.declarations())
      if (one.isAtFileLevel && one.what != "placement" && one.what != "rule")
        items.add(one.name, one.what == "action" ? Constant : Function,
                  one.what, others.comment(one));
  }
  for (const editor::Word &word : editor::words())
    if (word.what != "placement" && !word.name.contains('_'))
      items.add(word.name,
                word.what == "keyword"  ? int(Keyword)
                : word.what == "action" ? int(Constant)
                                        : int(Function),
                word.form, word.text);
  return std::move(items.all);
}

json::Value Server::signature(Params params) {
  TextPtr text = textOf(params);
  if (!text)
    return nullptr;
  size_t offset = text->offset(params.getObject("position"));
  std::vector<Token> before = tokensBefore(text->all(), offset);
  auto call = callAround(before);
  if (!call)
    return nullptr;
  Meaning callee = meaningOf(uriIn(params), *text, call->callee);
  const editor::Word *word = editor::findWord(call->callee);
  std::string label, comment;
  std::vector<StringRef> parameters;
  std::string action; // What `parameters` lies in.
  if (callee.what == "action" || (word && word->what == "action")) {
    action = call->callee.str() + "(chunk, mb: m)";
    parameters =
        parametersIn(StringRef(action).drop_front(call->callee.size()));
    comment = word ? word->text.str() : "";
  } else if (callee.text) {
    StringRef all = callee.text->all();
    parameters = parametersIn(all.drop_front(callee.begin + callee.size));
    Names names(all);
    if (const Declaration *one =
            names.meaning(all.substr(callee.begin, callee.size)))
      comment = names.comment(*one);
  } else if (word) {
    parameters = parametersIn(word->form.drop_front(word->name.size()));
    comment = word->text.str();
  }
  if (parameters.empty())
    return nullptr;
  label = call->callee.str() + "(" + llvm::join(parameters, ", ") + ")";
  json::Array shown;
  for (StringRef one : parameters)
    shown.push_back(json::Object{{"label", one.str()}});
  json::Object signature{{"label", label}, {"parameters", std::move(shown)}};
  if (!comment.empty())
    signature["documentation"] = comment;
  return json::Object{
      {"signatures", json::Array{std::move(signature)}},
      {"activeSignature", 0},
      {"activeParameter",
       int64_t(std::min(call->argument, parameters.size() - 1))}};
}

json::Value Server::codeActions(Params params) {
  json::Array actions;
  TextPtr text = textOf(params);
  const json::Object *asked = params.getObject("range");
  if (!text || !asked)
    return actions;
  std::string uri = uriIn(params);
  auto bytesOf = [&](const json::Object &range) {
    return std::pair(text->offset(range.getObject("start")),
                     text->offset(range.getObject("end")));
  };
  auto [from, to] = bytesOf(*asked);
  for (const json::Value &one : documents.at(uri).published) {
    const json::Object &diagnostic = *one.getAsObject();
    auto [begin, end] = bytesOf(*diagnostic.getObject("range"));
    const json::Array *fixes = diagnostic.getArray("data");
    if (!fixes || begin > to || end < from)
      continue;
    for (const json::Value &fix : *fixes) {
      const json::Object &edit = *fix.getAsObject();
      json::Array edits;
      edits.push_back(json::Object{{"range", *edit.get("range")},
                                   {"newText", *edit.get("newText")}});
      actions.push_back(json::Object{
          {"title", *edit.get("title")},
          {"kind", "quickfix"},
          {"diagnostics", json::Array{one}},
          {"isPreferred", fixes->size() == 1},
          {"edit",
           json::Object{{"changes", json::Object{{uri, std::move(edits)}}}}}});
    }
  }
  return actions;
}

json::Value Server::folds(Params params) {
  TextPtr text = textOf(params);
  if (!text)
    return nullptr;
  json::Array all;
  std::vector<int64_t> begins;
  for (const Token &token : editor::tokenize(text->all())) {
    if (!token.is("{") && !token.is("}"))
      continue;
    int64_t line = *text->position(token.text.begin() - text->all().begin())
                        .getInteger("line");
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

json::Value Server::formatting(Params params) {
  TextPtr text = textOf(params);
  if (!text)
    return nullptr;
  std::string formatted = editor::format(text->all());
  json::Array edits;
  if (formatted != text->all())
    edits.push_back(json::Object{{"range", text->range(0, text->all().size())},
                                 {"newText", std::move(formatted)}});
  return edits;
}
