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
using editor::Names;
namespace json = llvm::json;

Server::TextPtr Server::textOfFile(StringRef path) const {
  path.consume_front(libraryScheme);
  if (auto open = documents.find(uriOf(path)); open != documents.end())
    return open->second.text;
  if (auto buffer = disk->getBufferForFile(path))
    return std::make_shared<const Text>((*buffer)->getBuffer().str());
  auto *file = findBy(scheduleLibrary(), path, &LibraryFile::name);
  return file ? std::make_shared<const Text>(file->text.str()) : nullptr;
}

std::vector<Server::OtherText> Server::imports(const std::string &uri,
                                               const Text &text) const {
  constexpr size_t mostFiles = 64;
  std::vector<OtherText> found;
  auto add = [&](StringRef path) {
    std::string other = uriOf(path);
    if (other == uri || findBy(found, other, &OtherText::first) ||
        found.size() == mostFiles)
      return true;
    if (TextPtr theirs = textOfFile(path)) {
      found.emplace_back(other, theirs);
      return true;
    }
    return false;
  };
  auto importsOf = [&](StringRef from, const Text &of) {
    std::vector<editor::Token> tokens = editor::tokenize(of.all());
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      if (!tokens[i].is("import") ||
          tokens[i + 1].kind != editor::TokenKind::String)
        continue;
      StringRef name = tokens[i + 1].text.trim('"');
      SmallString<128> path(llvm::sys::path::parent_path(from));
      llvm::sys::path::append(path, name);
      add(path) || add(name);
    }
  };
  importsOf(pathOf(uri), text);
  for (size_t i = 0; i != found.size(); ++i) {
    TextPtr of = found[i].second; // The vector grows.
    importsOf(pathOf(found[i].first), *of);
  }
  add("placements.pp"); // What all files know.
  return found;
}

Server::Meaning Server::meaningOf(const std::string &uri, const Text &text,
                                  StringRef word) {
  Meaning meaning{word};
  size_t offset = word.begin() - text.all().begin();
  const Analysis &known = analysis(uri);
  if (const auto *use = known.useAt(offset)) {
    const SourceManager &sources = known.session->sources;
    Position at = sources.position(use->declared.begin);
    TextPtr declaring =
        at.file == known.path ? documents.at(uri).text : textOfFile(at.file);
    if (declaring) {
      uint32_t base = sources.loc(*sources.lookup(at.file), 0).raw;
      meaning.uri = at.file == known.path ? uri : uriOf(at.file);
      meaning.text = declaring;
      meaning.begin = use->declared.begin.raw - base;
      meaning.size = use->declared.end.raw - use->declared.begin.raw;
      meaning.isChecked = true;
      auto name = known.observer.names.find(use->declared.begin.raw);
      if (name != known.observer.names.end()) {
        meaning.what = name->second.what.str();
        meaning.type = name->second.type.str();
      }
      return meaning;
    }
  }
  auto take = [&](const std::string &of, const TextPtr &in,
                  const Declaration &one) {
    meaning.uri = of;
    meaning.text = in;
    meaning.begin = one.name.begin() - in->all().begin();
    meaning.size = one.name.size();
    meaning.what = one.what.str();
  };
  TextPtr own = documents.at(uri).text;
  Names names(own->all());
  if (const Declaration *one =
          names.meaning(own->all().substr(offset, word.size()))) {
    take(uri, own, *one);
    return meaning;
  }
  for (const auto &[other, theirs] : imports(uri, text)) {
    Names names(theirs->all());
    for (const Declaration &one : names.declarations())
      if (one.isAtFileLevel && one.name == word) {
        take(other, theirs, one);
        return meaning;
      }
  }
  return meaning;
}

std::optional<Server::Meaning> Server::meaningAt(Params params) {
  TextPtr text = textOf(params);
  if (!text)
    return std::nullopt;
  StringRef word =
      Names(text->all()).wordAt(text->offset(params.getObject("position")));
  if (word.empty())
    return std::nullopt;
  return meaningOf(uriIn(params), *text, word);
}

/// The schedules of the workspace that are not open and have the word.
std::vector<Server::OtherText> Server::closedWith(StringRef word) const {
  constexpr size_t mostEntries = 50'000, mostBytes = 1 << 20;
  std::vector<OtherText> found;
  size_t entries = 0;
  for (const std::string &folder : folders) {
    std::error_code error;
    llvm::vfs::recursive_directory_iterator at(*disk, folder, error), end;
    for (; !error && at != end && ++entries < mostEntries;
         at.increment(error)) {
      StringRef path = at->path(), name = llvm::sys::path::filename(path);
      if (name.starts_with("."))
        at.no_push();
      std::string uri = uriOf(path);
      if (!name.ends_with(".pp") || name.starts_with(".") ||
          documents.count(uri))
        continue;
      auto buffer = disk->getBufferForFile(path);
      if (buffer && (*buffer)->getBufferSize() <= mostBytes &&
          (*buffer)->getBuffer().contains(word))
        found.emplace_back(
            uri, std::make_shared<const Text>((*buffer)->getBuffer().str()));
    }
  }
  return found;
}

/// The places in all open texts, and in those of the workspace if asked for,
/// where words mean a name, the declaration among them, by text.
std::map<std::string, json::Array> Server::places(const Meaning &meaning,
                                                  bool inWorkspace) {
  std::map<std::string, std::set<std::pair<size_t, size_t>>> found;
  StringRef word = meaning.text->all().substr(meaning.begin, meaning.size);
  std::string file = pathOf(meaning.uri);
  StringRef path = file;
  path.consume_front(libraryScheme);
  auto take = [&](const std::string &uri, const Analysis &known) {
    const SourceManager &sources = known.session->sources;
    auto declaring = sources.lookup(path);
    if (!declaring)
      return;
    SourceLoc declared = sources.loc(*declaring, meaning.begin);
    for (const auto &use : known.observer.uses)
      if (use.declared.begin == declared) {
        StringRef in = sources.position(use.at.begin).file;
        uint32_t base = sources.loc(*sources.lookup(in), 0).raw;
        found[in == known.path ? uri : uriOf(in)].insert(
            {use.at.begin.raw - base, use.at.end.raw - base});
      }
  };
  if (meaning.isChecked) {
    for (const auto &[uri, document] : documents)
      take(uri, analysis(uri));
    Names names(meaning.text->all());
    const Declaration *one = names.meaning(word);
    if (inWorkspace && (!one || one->isAtFileLevel))
      for (const auto &[uri, text] : closedWith(word)) {
        std::string own = pathOf(uri);
        take(uri, Analysis(own, *text, settingFor(uri, *text),
                           [&](StringRef as) { return filesWith(own, as); }));
      }
  }
  if (auto own = documents.find(meaning.uri);
      own != documents.end() &&
      (!meaning.isChecked || !analysis(meaning.uri).isWhole)) {
    StringRef all = own->second.text->all();
    Names names(all);
    if (const Declaration *one =
            names.meaning(all.substr(meaning.begin, meaning.size)))
      for (StringRef word : names.occurrences(*one))
        found[meaning.uri].insert(
            {word.begin() - all.begin(), word.end() - all.begin()});
  }
  std::map<std::string, json::Array> ranges;
  for (const auto &[uri, words] : found)
    if (TextPtr text = textOfFile(pathOf(uri)))
      for (auto [begin, end] : words)
        ranges[uri].push_back(text->range(begin, end));
  return ranges;
}

/// The file whose import stands at the place of a request, and where.
std::optional<std::pair<std::string, StringRef>>
Server::importAt(Params params) const {
  TextPtr text = textOf(params);
  if (!text)
    return std::nullopt;
  size_t at = text->offset(params.getObject("position"));
  std::vector<editor::Token> tokens = editor::tokenize(text->all());
  for (size_t i = 1; i < tokens.size(); ++i) {
    size_t begin = tokens[i].text.begin() - text->all().begin();
    if (tokens[i].kind == editor::TokenKind::String && begin <= at &&
        at <= begin + tokens[i].text.size() && tokens[i - 1].is("import"))
      for (const auto &[uri, theirs] : imports(uriIn(params), *text))
        if (StringRef(uri).ends_with(tokens[i].text.trim('"')))
          return std::pair(uri, tokens[i].text);
  }
  return std::nullopt;
}

json::Value Server::definition(Params params) {
  if (auto file = importAt(params))
    return json::Object{{"uri", file->first}, {"range", Text("").range(0, 0)}};
  auto meaning = meaningAt(params);
  if (!meaning || !meaning->text)
    return nullptr;
  return json::Object{
      {"uri", meaning->uri},
      {"range",
       meaning->text->range(meaning->begin, meaning->begin + meaning->size)}};
}

json::Value Server::references(Params params) {
  auto meaning = meaningAt(params);
  json::Array all;
  if (meaning && meaning->text)
    for (auto &[uri, ranges] : places(*meaning, /*inWorkspace=*/true))
      for (json::Value &range : ranges)
        all.push_back(json::Object{{"uri", uri}, {"range", std::move(range)}});
  return all;
}

json::Value Server::highlights(Params params) {
  auto meaning = meaningAt(params);
  json::Array all;
  if (!meaning || !meaning->text)
    return all;
  auto found = places(*meaning, /*inWorkspace=*/false);
  for (json::Value &range : found[uriIn(params)])
    all.push_back(json::Object{{"range", std::move(range)}});
  return all;
}

json::Value Server::prepareRename(Params params) {
  auto meaning = meaningAt(params);
  if (!meaning || !meaning->text ||
      StringRef(meaning->uri).starts_with(libraryScheme))
    return nullptr;
  return textOf(params)->range(meaning->word);
}

json::Value Server::rename(Params params) {
  std::string name = params.getString("newName").value_or("").str();
  std::vector<editor::Token> tokens = editor::tokenize(name);
  bool isName = tokens.size() == 1 && tokens.front().isWord() &&
                !editor::findWord(name) &&
                !llvm::is_contained(keywords(), name);
  auto meaning = meaningAt(params);
  if (!isName || !meaning || !meaning->text ||
      StringRef(meaning->uri).starts_with(libraryScheme))
    return nullptr;
  json::Object changes;
  for (auto &[uri, ranges] : places(*meaning, /*inWorkspace=*/true)) {
    json::Array edits;
    for (json::Value &range : ranges)
      edits.push_back(
          json::Object{{"range", std::move(range)}, {"newText", name}});
    changes[uri] = std::move(edits);
  }
  return json::Object{{"changes", std::move(changes)}};
}

json::Value Server::hover(Params params) {
  if (auto file = importAt(params)) {
    TextPtr theirs = textOfFile(pathOf(file->first));
    std::string summary;
    for (StringRef line : llvm::split(theirs->all(), '\n')) {
      if (!line.consume_front("//"))
        break;
      summary += (summary.empty() ? "" : " ") + line.trim().str();
    }
    return json::Object{
        {"contents", json::Object{{"kind", "markdown"}, {"value", summary}}},
        {"range", textOf(params)->range(file->second)}};
  }
  auto meaning = meaningAt(params);
  if (!meaning)
    return nullptr;
  std::string words;
  if (meaning->text) {
    StringRef all = meaning->text->all();
    words =
        "```pp\n" + meaning->text->line(meaning->begin).trim().str() + "\n```";
    Names names(all);
    if (const Declaration *one =
            names.meaning(all.substr(meaning->begin, meaning->size)))
      if (std::string comment = names.comment(*one); !comment.empty())
        words += "\n" + comment;
    std::string value;
    if (auto found = documents.find(meaning->uri);
        found != documents.end() &&
        found->second.result.version == found->second.version)
      value =
          found->second.result.values.getString(std::to_string(meaning->begin))
              .value_or("");
    std::string type = meaning->type.empty() ? "" : "`" + meaning->type + "`";
    if (!type.empty() || !value.empty())
      words += "\n\n" + type +
               (type.empty() || value.empty()       ? ""
                : StringRef(value).starts_with("=") ? " "
                                                    : ", ") +
               value;
  } else if (const editor::Word *word = editor::findWord(meaning->word)) {
    words = "```pp\n" + word->form.str() + "\n```\n" + word->text.str();
  } else {
    return nullptr;
  }
  return json::Object{
      {"contents", json::Object{{"kind", "markdown"}, {"value", words}}},
      {"range", textOf(params)->range(meaning->word)}};
}

json::Value Server::symbols(Params params) {
  TextPtr text = textOf(params);
  if (!text)
    return nullptr;
  Names names(text->all());
  json::Array all;
  for (const Declaration &one : names.declarations()) {
    bool isPart = one.what == "phase" || one.what == "pipe" ||
                  one.what == "layer" || one.what == "part";
    if (!one.isAtFileLevel && !isPart)
      continue;
    size_t begin = one.name.begin() - text->all().begin();
    size_t end = one.bodyEnd ? one.bodyEnd - text->all().begin()
                             : begin + one.name.size();
    constexpr int function = 12, field = 8;
    all.push_back(json::Object{{"name", one.name},
                               {"detail", one.what},
                               {"kind", isPart ? field : function},
                               {"range", text->range(begin, end)},
                               {"selectionRange", text->range(one.name)}});
  }
  return all;
}

/// In the order of the legend that initialize() gives; -1 for none.
static int tokenType(const editor::Token &token, StringRef what) {
  enum {
    Keyword,
    Comment,
    String,
    Number,
    Operator,
    Function,
    Macro,
    Variable,
    TypeName,
    Parameter,
    Class,
    EnumMember
  };
  switch (token.kind) {
  case editor::TokenKind::Comment:
    return Comment;
  case editor::TokenKind::String:
    return String;
  case editor::TokenKind::Number:
    return Number;
  case editor::TokenKind::Symbol:
    return StringRef("(){}[],;:").contains(token.text) ? -1 : int(Operator);
  case editor::TokenKind::Word:
    break;
  }
  const editor::Word *word =
      what.empty() ? editor::findWord(token.text) : nullptr;
  return llvm::StringSwitch<int>(word ? word->what : what)
      .Case("keyword", Keyword)
      .Cases("function", "counter", "fn", Function)
      .Cases("block", "rule", Macro)
      .Cases("let", "loop", "for", Variable)
      .Cases("placement", "pipe", TypeName)
      .Cases("value", "parameter", Parameter)
      .Cases("schedule", "model", "cluster", Class)
      .Case("action", EnumMember)
      .Default(-1);
}

json::Value Server::semanticTokens(Params params) {
  TextPtr text = textOf(params);
  if (!text)
    return nullptr;
  const Analysis &known = analysis(uriIn(params));
  std::map<size_t, const sema::Observer::Name *> named;
  for (const auto &use : known.observer.uses)
    if (auto at = known.offsetIn(use.at.begin))
      if (auto name = known.observer.names.find(use.declared.begin.raw);
          name != known.observer.names.end())
        named[*at] = &name->second;
  json::Array data;
  int64_t line = 0, column = 0;
  for (const editor::Token &token : editor::tokenize(text->all())) {
    size_t begin = token.text.begin() - text->all().begin();
    auto name = named.find(begin);
    bool isNamed = name != named.end();
    int type = tokenType(token, isNamed ? name->second->what : StringRef());
    if (type < 0)
      continue;
    json::Object at = text->position(begin);
    int64_t itsLine = *at.getInteger("line");
    int64_t itsColumn = *at.getInteger("character");
    for (int64_t number :
         {itsLine - line, itsLine == line ? itsColumn - column : itsColumn,
          int64_t(utf16Length(token.text)), int64_t(type), int64_t(0)})
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
