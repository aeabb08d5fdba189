// What words mean, asked of the checker; where it has nothing to say, of the
// braces around them.
#include "LspServer.h"
#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Editor/Words.h"
#include "ppcc/Parse/Parser.h"

#include "llvm/Support/Path.h"

using namespace ppcc;
using namespace ppcc::lsp;
using editor::Declaration;
namespace json = llvm::json;

std::optional<std::string> Server::read(StringRef path) const {
  SourceManager sources(disk);
  restrictSources(sources);
  auto file = sources.open(path);
  if (!file) {
    llvm::consumeError(file.takeError());
    return std::nullopt;
  }
  return sources.text(*file).str();
}

TextPtr Server::textOfFile(StringRef path) {
  path.consume_front(libraryScheme);
  if (const Document *open = find(uriOf(path)))
    return open->text;
  if (auto text = read(path))
    return std::make_shared<const Text>(std::move(*text));
  auto *file = findBy(scheduleLibrary(), path, &LibraryFile::name);
  return file ? std::make_shared<const Text>(file->text.str()) : nullptr;
}

/// The names of the files that a text imports, in their quotation marks.
static std::vector<StringRef> importedIn(const Text &text) {
  std::vector<StringRef> found;
  ArrayRef<editor::Token> tokens = text.names.tokens();
  for (size_t i = 1; i < tokens.size(); ++i)
    if (tokens[i - 1].is("import") && tokens[i].isString())
      found.push_back(tokens[i].text);
  return found;
}

std::vector<Server::OtherText> Server::imports(const Document &document) {
  constexpr size_t maxFiles = 64;
  std::vector<OtherText> found;
  auto add = [&](StringRef path) {
    std::string other = uriOf(path);
    if (other == document.uri || findBy(found, other, &OtherText::first) ||
        found.size() == maxFiles)
      return true;
    TextPtr theirs = textOfFile(path);
    if (theirs)
      found.emplace_back(other, theirs);
    return theirs != nullptr;
  };
  auto importsOf = [&](StringRef from, const Text &of) {
    for (StringRef quoted : importedIn(of)) {
      SmallString<128> path(llvm::sys::path::parent_path(from));
      llvm::sys::path::append(path, quoted.trim('"'));
      add(path) || add(quoted.trim('"'));
    }
  };
  importsOf(document.path, *document.text);
  for (size_t i = 0; i != found.size(); ++i) {
    TextPtr of = found[i].second; // The vector grows.
    importsOf(pathOf(found[i].first), *of);
  }
  add("placements.pp"); // What all files know.
  return found;
}

Server::ResolvedName Server::resolve(Document &document, StringRef word) {
  ResolvedName meaning{word};
  const Text &own = *document.text;
  const Analysis &known = analysis(document);
  if (const auto *use = known.useAt(own.offset(word))) {
    auto [begin, end] = use->declared;
    Position at = known.session.sources.position(begin);
    bool isHere = at.file == known.path;
    meaning.text = isHere ? document.text : textOfFile(at.file);
    if (meaning.text) {
      meaning.uri = isHere ? document.uri : uriOf(at.file);
      meaning.name = meaning.text->all().substr(at.offset, end.raw - begin.raw);
      meaning.isChecked = true;
      if (const auto *name = known.nameAt(begin)) {
        meaning.what = name->what;
        meaning.type = name->type;
      }
      return meaning;
    }
  }
  auto take = [&](const std::string &uri, const TextPtr &text,
                  const Declaration *one) {
    if (one) {
      meaning.uri = uri;
      meaning.text = text;
      meaning.name = one->name;
      meaning.what = one->what;
    }
    return one != nullptr;
  };
  if (take(document.uri, document.text, own.names.meaning(word)))
    return meaning;
  for (const auto &[uri, text] : imports(document))
    if (take(uri, text, text->names.atFileLevel(word)))
      break;
  return meaning;
}

Server::ResolvedName Server::resolveAt(Document &document, Params params) {
  const Text &text = *document.text;
  StringRef word = text.names.wordAt(text.offset(params.getObject("position")));
  return word.empty() ? ResolvedName() : resolve(document, word);
}

std::string Server::ResolvedName::comment() const {
  const Declaration *one = text->names.meaning(name);
  return one ? text->names.comment(*one) : "";
}

/// The schedules of the workspace that are not open and have the word.
std::vector<Server::OtherText> Server::unopenedFilesWith(StringRef word) {
  constexpr size_t maxEntries = 50'000, maxBytes = 8 << 20;
  std::vector<OtherText> found;
  size_t entries = 0, bytes = 0;
  for (const std::string &folder : folders) {
    std::error_code error;
    llvm::vfs::recursive_directory_iterator at(*disk, folder, error), end;
    for (; !error && at != end; at.increment(error)) {
      if (++entries == maxEntries || bytes > maxBytes) {
        warn("the workspace is too large: not all of its schedules were "
             "searched for `" +
             word.str() + "`");
        return found;
      }
      StringRef path = at->path(), name = llvm::sys::path::filename(path);
      if (name.starts_with("."))
        at.no_push();
      std::string uri = uriOf(path);
      if (!name.ends_with(".pp") || name.starts_with(".") ||
          documents.count(uri))
        continue;
      auto text = read(path);
      if (!text || !StringRef(*text).contains(word))
        continue;
      bytes += text->size();
      found.emplace_back(uri, std::make_shared<const Text>(std::move(*text)));
    }
  }
  return found;
}

/// The places in all open texts, and in those of the workspace if asked for,
/// where words mean a name, the declaration among them, by text.
Server::Ranges Server::occurrencesOf(const ResolvedName &meaning,
                                     bool inWorkspace) {
  Ranges ranges;
  if (!meaning.text)
    return ranges;
  std::map<std::string, std::set<std::pair<size_t, size_t>>> found;
  const editor::SymbolIndex &names = meaning.text->names;
  const Declaration *one = names.meaning(meaning.name);
  std::string file = pathOf(meaning.uri);
  StringRef path = file;
  path.consume_front(libraryScheme);
  auto take = [&](const std::string &uri, const Analysis &known) {
    const SourceManager &sources = known.session.sources;
    auto declaring = sources.lookup(path);
    if (!declaring)
      return;
    SourceLoc declared =
        sources.loc(*declaring, meaning.text->offset(meaning.name));
    for (const auto &use : known.observer.uses)
      if (use.declared.begin == declared) {
        Position at = sources.position(use.at.begin);
        size_t size = use.at.end.raw - use.at.begin.raw;
        found[at.file == known.path ? uri : uriOf(at.file)].insert(
            {at.offset, at.offset + size});
      }
  };
  if (meaning.isChecked) {
    for (auto &[uri, document] : documents)
      take(uri, analysis(document));
    if (inWorkspace && (!one || one->isAtFileLevel))
      for (const auto &[uri, text] : unopenedFilesWith(meaning.name))
        take(uri, *analyze(pathOf(uri), *text));
  }
  if (Document *own = find(meaning.uri);
      own && one && (!meaning.isChecked || !analysis(*own).parsedFully))
    for (StringRef word : names.occurrences(*one)) {
      size_t begin = meaning.text->offset(word);
      found[meaning.uri].insert({begin, begin + word.size()});
    }
  for (const auto &[uri, words] : found)
    if (TextPtr text = textOfFile(pathOf(uri)))
      for (auto [begin, end] : words)
        ranges[uri].push_back(text->range(begin, end));
  return ranges;
}

/// The file whose import stands at the place of a request, and where.
std::optional<std::pair<std::string, StringRef>>
Server::importAt(Document &document, Params params) {
  const Text &text = *document.text;
  size_t at = text.offset(params.getObject("position"));
  for (StringRef name : importedIn(text))
    if (size_t begin = text.offset(name);
        begin <= at && at <= begin + name.size())
      for (const auto &[uri, theirs] : imports(document))
        if (StringRef(uri).ends_with(name.trim('"')))
          return std::pair(uri, name);
  return std::nullopt;
}

json::Value Server::definition(Document &document, Params params) {
  if (auto file = importAt(document, params))
    return location(file->first, Text("").range(0, 0));
  ResolvedName meaning = resolveAt(document, params);
  if (!meaning.text)
    return nullptr;
  return location(meaning.uri, meaning.text->range(meaning.name));
}

json::Value Server::references(Document &document, Params params) {
  json::Array all;
  for (auto &[uri, ranges] :
       occurrencesOf(resolveAt(document, params), /*inWorkspace=*/true))
    for (json::Object &range : ranges)
      all.push_back(location(uri, std::move(range)));
  return all;
}

json::Value Server::highlights(Document &document, Params params) {
  json::Array all;
  auto found =
      occurrencesOf(resolveAt(document, params), /*inWorkspace=*/false);
  for (json::Object &range : found[document.uri])
    all.push_back(json::Object{{"range", std::move(range)}});
  return all;
}

json::Value Server::prepareRename(Document &document, Params params) {
  ResolvedName meaning = resolveAt(document, params);
  if (!meaning.canRename())
    return nullptr;
  return document.text->range(meaning.word);
}

json::Value Server::rename(Document &document, Params params) {
  std::string name = params.getString("newName").value_or("").str();
  std::vector<editor::Token> tokens = editor::tokenize(name);
  bool isName = tokens.size() == 1 && tokens.front().isWord() &&
                !editor::findWord(name) &&
                !llvm::is_contained(keywords(), name);
  ResolvedName meaning = resolveAt(document, params);
  if (!isName || !meaning.canRename())
    return nullptr;
  json::Object changes;
  for (auto &[uri, ranges] : occurrencesOf(meaning, /*inWorkspace=*/true)) {
    json::Array edits;
    for (json::Object &range : ranges)
      edits.push_back(edit(std::move(range), name));
    changes[uri] = std::move(edits);
  }
  return json::Object{{"changes", std::move(changes)}};
}

json::Value Server::hover(Document &document, Params params) {
  auto shown = [&](StringRef place, std::string words) -> json::Value {
    return json::Object{{"contents", json::Object{{"kind", "markdown"},
                                                  {"value", std::move(words)}}},
                        {"range", document.text->range(place)}};
  };
  if (auto file = importAt(document, params)) {
    TextPtr theirs = textOfFile(pathOf(file->first));
    return shown(file->second, LibraryFile{"", theirs->all()}.summary());
  }
  ResolvedName meaning = resolveAt(document, params);
  if (!meaning.text) {
    const editor::Word *word = editor::findWord(meaning.word);
    return word ? shown(meaning.word, "```pp\n" + word->form.str() + "\n```\n" +
                                          word->text.str())
                : nullptr;
  }
  size_t begin = meaning.text->offset(meaning.name);
  std::string words =
      "```pp\n" + meaning.text->line(begin).trim().str() + "\n```";
  if (std::string comment = meaning.comment(); !comment.empty())
    words += "\n" + comment;
  StringRef value;
  if (const Document *declaring = find(meaning.uri);
      declaring && declaring->compiledVersion == declaring->version)
    value = declaring->values.getString(std::to_string(begin)).value_or("");
  std::vector<std::string> known;
  if (!meaning.type.empty())
    known.push_back("`" + meaning.type.str() + "`");
  if (!value.empty())
    known.push_back(value.str());
  if (!known.empty())
    words += "\n\n" + llvm::join(known, value.starts_with("=") ? " " : ", ");
  return shown(meaning.word, words);
}

json::Value Server::symbols(Document &document, Params) {
  const Text &text = *document.text;
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

json::Value Server::semanticTokens(Document &document, Params) {
  const Text &text = *document.text;
  const Analysis &known = analysis(document);
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

json::Value Server::libraryText(Params params) {
  StringRef uri = params.getString("uri").value_or("");
  uri.consume_front(libraryScheme);
  auto *file = findBy(scheduleLibrary(), uri, &LibraryFile::name);
  return file ? json::Value(file->text) : nullptr;
}
