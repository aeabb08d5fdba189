// What words mean, asked of the checker; where it has nothing to say, of the
// braces around them.
#include "Server.h"
#include "ppcc/Compiler/ScheduleLibrary.h"

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
  if (const Document *open = find(uriOf(path)))
    return open->text;
  std::optional<std::string> text;
  if (path.consume_front(libraryFolder)) {
    if (auto *file = findBy(scheduleLibrary(), path, &LibraryFile::name))
      text = file->text.str();
  } else {
    text = read(path);
  }
  return text ? std::make_shared<const Text>(std::move(*text)) : nullptr;
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

std::vector<Server::OtherText> Server::imports(Document &document) {
  const SourceManager &sources = analysis(document).session.sources;
  std::vector<OtherText> found;
  auto add = [&](StringRef path) {
    if (TextPtr text = path == document.path ? nullptr : textOfFile(path))
      found.emplace_back(uriOf(path), std::move(text));
  };
  llvm::for_each(sources.filesRead(), add);
  for (const LibraryFile &file : scheduleLibrary())
    if (std::string path = (libraryFolder + file.name).str();
        sources.lookup(path))
      add(path);
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

Server::ResolvedName Server::resolveAt(const PositionParams &at) {
  StringRef word = at.document.text->names.wordAt(at.offset);
  return word.empty() ? ResolvedName() : resolve(at.document, word);
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
  std::string path = pathOf(meaning.uri);
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
Server::importAt(const PositionParams &at) {
  const Text &text = *at.document.text;
  for (StringRef name : importedIn(text))
    if (size_t begin = text.offset(name);
        begin <= at.offset && at.offset <= begin + name.size())
      for (const auto &[uri, theirs] : imports(at.document))
        if (StringRef(uri).ends_with(name.trim('"')))
          return std::pair(uri, name);
  return std::nullopt;
}
