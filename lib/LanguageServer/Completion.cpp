// What helps to write a schedule: completion and signatures.
#include "Server.h"
#include "ppcc/Compiler/ScheduleLibrary.h"

#include "llvm/ADT/StringSet.h"

using namespace ppcc;
using namespace ppcc::lsp;
using editor::Declaration;
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
  while (!before.empty() && editor::isWordCharacter(before.back()))
    before = before.drop_back();
  return editor::withoutComments(editor::tokenize(before));
}

StringRef blockAround(ArrayRef<Token> before) {
  size_t i = before.size();
  for (unsigned depth = 1; i != 0 && depth != 0;)
    depth += before[--i].is("}") ? 1 : before[i].is("{") ? -1 : 0;
  while (i != 0 && !before[i - 1].is(";") && !before[i - 1].is("{") &&
         !before[i - 1].is("}"))
    --i;
  return i < before.size() ? before[i].text : StringRef();
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

/// What stands in the brackets after a name, cut at commas: `a`, `b: int = 2`.
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

bool isAction(StringRef what, const editor::Word *word) {
  return what == "action" || (word && word->what == "action");
}

} // namespace

StringRef lsp::blockAround(StringRef text, size_t offset) {
  return ::blockAround(tokensBefore(text, offset));
}

/// Completions, each once, the nearest first.
class lsp::CompletionList {
public:
  void add(StringRef label, int kind, StringRef detail,
           StringRef documentation = "", const json::Array &edits = {}) {
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
      item["additionalTextEdits"] = json::Array(edits);
    all.push_back(std::move(item));
  }
  json::Array all;

private:
  llvm::StringSet<> seen;
};

json::Value Server::completion(const PositionParams &at) {
  CompletionList items;
  complete(at, items);
  return std::move(items.all);
}

/// What a call may be given at a place after its bracket, or after a comma.
void Server::completeArgument(Document &document, const char *place,
                              StringRef name, bool isFirst,
                              CompletionList &items) {
  ResolvedName callee = resolve(document, name);
  const editor::Word *word = editor::findWord(name);
  if (isAction(callee.what, word)) {
    for (int64_t chunk = 0; chunk < std::min<int64_t>(document.chunks, 64);
         ++chunk)
      items.add(std::to_string(chunk), Value, "chunk");
    for (const Declaration &one : document.text->names.declarations())
      if (one.what == "pipe" && one.isSeenAt(place))
        items.add(one.name, Field, "pipe");
    items.add("mb:", Field, "the microbatch");
  } else if (word && word->what == "counter") {
    for (const editor::Word &one : editor::words)
      if (one.what == "action" && one.name.size() == 1)
        items.add(one.name, Constant, "action", one.text);
  } else if (llvm::is_contained({"rule", "schedule"}, callee.what) ||
             (isFirst &&
              !llvm::is_contained({"fn", "function", "block"}, callee.what))) {
    for (StringRef param : callee.parameters())
      items.add(param.take_while(editor::isWordCharacter).str() + ":", Field,
                param);
  }
}

void Server::complete(const PositionParams &at, CompletionList &items) {
  Document &document = at.document;
  size_t offset = at.offset;
  const Text &text = *document.text;
  std::vector<Token> before = tokensBefore(text.all(), offset);
  auto last = [&](size_t i) {
    return i < before.size() ? before[before.size() - 1 - i].text : StringRef();
  };
  // Inside `import "`.
  if (last(0).starts_with("\"") && last(1) == "import") {
    for (const LibraryFile &file : scheduleLibrary())
      items.add(file.name, File, "library", file.summary());
    return;
  }
  // Behind words that something of a table follows.
  sema::CommWords comm = commWords();
  auto ofTable = llvm::StringSwitch<ArrayRef<StringRef>>(last(0))
                     .Case("transport", comm.transports)
                     .Case("order", comm.orders)
                     .Case("fuse", comm.fusions)
                     .Case("calls", comm.calls)
                     .Default({});
  for (StringRef word : ofTable)
    items.add(word, Value, last(0));
  if (!ofTable.empty())
    return;
  StringRef block = ::blockAround(before);
  for (const editor::Setting &one : editor::settings)
    if (one.block != block)
      continue;
    else if (last(0) == "{" || last(0) == ";")
      items.add(one.name, Field, block, one.text);
    else if (last(0) == one.name && !one.values.empty())
      for (StringRef value : llvm::split(one.values, ' '))
        items.add(value, Value, one.name);
  if (!items.all.empty())
    return;
  auto files = imports(document);
  // Behind words that a declaration of a file follows: of this one, of those
  // that it imports, and of the library, with the import that is missing.
  StringRef declared = llvm::StringSwitch<StringRef>(last(0))
                           .Case("with", "rule")
                           .Case("placement", "placement")
                           .Case("import", "schedule")
                           .Default("");
  if (!declared.empty()) {
    auto addFrom = [&](const editor::SymbolIndex &names, StringRef where,
                       const json::Array &edits) {
      for (const Declaration &one : names.declarations())
        if (one.isAtFileLevel && one.what == declared)
          items.add(one.name, Function, where, names.comment(one), edits);
    };
    addFrom(text.names, declared, {});
    for (const auto &[other, theirs] : files)
      addFrom(theirs->names, StringRef(other).rsplit('/').second, {});
    for (const LibraryFile &file : scheduleLibrary())
      addFrom(editor::SymbolIndex(file.text), file.name,
              json::Array{text.importOf(file.name)});
    return;
  }
  auto call = callAround(before);
  if (last(0) == ":" && before.size() > 1 && !call) {
    for (StringRef type : {"int", "bool", "float", "pipe", "part", "int[]"})
      items.add(type, Class, "type");
    return;
  }
  const char *place = text.all().begin() + offset;
  if (call && (last(0) == "(" || last(0) == ","))
    completeArgument(document, place, call->callee, last(0) == "(", items);
  const Analysis &known = analysis(document);
  for (const Declaration &one : llvm::reverse(text.names.declarations()))
    if (one.isSeenAt(place)) {
      std::string detail = one.what.str();
      const auto *name = known.nameAt(known.locOf(text.offset(one.name)));
      if (name && !name->type.empty())
        detail += ": " + name->type.str();
      items.add(one.name, one.isAtFileLevel ? Function : Variable, detail,
                text.names.comment(one));
    }
  for (const auto &[other, theirs] : files)
    for (const Declaration &one : theirs->names.declarations())
      if (one.isAtFileLevel && one.what != "placement" && one.what != "rule")
        items.add(one.name, one.what == "action" ? Constant : Function,
                  one.what, theirs->names.comment(one));
  for (const editor::Word &word : editor::words)
    if (word.what != "placement" && !word.name.contains('_'))
      items.add(word.name,
                word.what == "keyword"  ? Keyword
                : word.what == "action" ? Constant
                                        : Function,
                word.form, word.text);
}

json::Value Server::signature(const PositionParams &at) {
  std::vector<Token> before = tokensBefore(at.document.text->all(), at.offset);
  auto call = callAround(before);
  if (!call)
    return nullptr;
  ResolvedName callee = resolve(at.document, call->callee);
  const editor::Word *word = editor::findWord(call->callee);
  std::string comment = word ? word->text.str() : "";
  std::vector<StringRef> parameters;
  if (isAction(callee.what, word)) {
    parameters = {"chunk", "mb: m"};
  } else if (callee.text) {
    parameters = callee.parameters();
    comment = callee.comment();
  } else if (word) {
    parameters = parametersIn(word->form.drop_front(word->name.size()));
  }
  if (parameters.empty())
    return nullptr;
  json::Array shown;
  for (StringRef one : parameters)
    shown.push_back(json::Object{{"label", one.str()}});
  json::Object signature{
      {"label", call->callee.str() + "(" + llvm::join(parameters, ", ") + ")"},
      {"parameters", std::move(shown)}};
  if (!comment.empty())
    signature["documentation"] = comment;
  return json::Object{
      {"signatures", json::Array{std::move(signature)}},
      {"activeSignature", 0},
      {"activeParameter",
       int64_t(std::min(call->argument, parameters.size() - 1))}};
}

std::vector<StringRef> Server::ResolvedName::parameters() const {
  return text ? parametersIn(
                    text->all().drop_front(text->offset(name) + name.size()))
              : std::vector<StringRef>();
}
