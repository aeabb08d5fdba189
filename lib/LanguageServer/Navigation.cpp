// Where names are declared and used, and what they are.
#include "Server.h"
#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Parse/Parser.h"

using namespace ppcc;
using namespace ppcc::lsp;
namespace json = llvm::json;

json::Value Server::definition(const PositionParams &at) {
  if (auto file = importAt(at))
    return location(file->first, Text("").range(0, 0));
  ResolvedName meaning = resolveAt(at);
  if (!meaning.text)
    return nullptr;
  return location(meaning.uri, meaning.text->range(meaning.name));
}

json::Value Server::references(const PositionParams &at) {
  json::Array all;
  for (auto &[uri, ranges] : occurrencesOf(resolveAt(at), /*inWorkspace=*/true))
    for (json::Object &range : ranges)
      all.push_back(location(uri, std::move(range)));
  return all;
}

json::Value Server::highlights(const PositionParams &at) {
  json::Array all;
  auto found = occurrencesOf(resolveAt(at), /*inWorkspace=*/false);
  for (json::Object &range : found[at.document.uri])
    all.push_back(json::Object{{"range", std::move(range)}});
  return all;
}

json::Value Server::prepareRename(const PositionParams &at) {
  ResolvedName meaning = resolveAt(at);
  if (!meaning.canRename())
    return nullptr;
  return at.document.text->range(meaning.word);
}

json::Value Server::rename(const RenameParams &params) {
  const std::string &name = params.newName;
  std::vector<editor::Token> tokens = editor::tokenize(name);
  bool isName = tokens.size() == 1 && tokens.front().isWord() &&
                !editor::findWord(name) &&
                !llvm::is_contained(keywords(), name);
  ResolvedName meaning = resolveAt(params);
  if (!isName || !meaning.canRename())
    return nullptr;
  Ranges found = occurrencesOf(meaning, /*inWorkspace=*/true);
  bool isTaken = llvm::any_of(imports(params.document), [&](auto &other) {
    return other.second->names.atFileLevel(name);
  });
  for (const auto &[uri, ranges] : found) {
    TextPtr text = textOfFile(pathOf(uri));
    for (const editor::Declaration &one : text->names.declarations())
      isTaken |= one.name == name && llvm::any_of(ranges, [&](auto &range) {
                   size_t begin = text->offset(range.getObject("start"));
                   return one.isSeenAt(text->all().begin() + begin);
                 });
  }
  if (isTaken) // One would hide the other.
    return warn("`" + name + "` is declared here already: choose another name"),
           nullptr;
  json::Object changes;
  for (auto &[uri, ranges] : found) {
    json::Array edits;
    for (json::Object &range : ranges)
      edits.push_back(edit(std::move(range), name));
    changes[uri] = std::move(edits);
  }
  return json::Object{{"changes", std::move(changes)}};
}

json::Value Server::hover(const PositionParams &at) {
  auto shown = [&](StringRef place, std::string words) -> json::Value {
    return json::Object{{"contents", json::Object{{"kind", "markdown"},
                                                  {"value", std::move(words)}}},
                        {"range", at.document.text->range(place)}};
  };
  if (auto file = importAt(at)) {
    TextPtr theirs = textOfFile(pathOf(file->first));
    return shown(file->second, LibraryFile{"", theirs->all()}.summary());
  }
  ResolvedName meaning = resolveAt(at);
  if (!meaning.text) {
    StringRef block = blockAround(at.document.text->all(), at.offset);
    for (const editor::Setting &one : editor::settings)
      if (one.block == block && one.name == meaning.word)
        return shown(meaning.word, one.text.str());
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

json::Value Server::libraryText(Params params) {
  StringRef uri = params.getString("uri").value_or("");
  uri.consume_front(libraryScheme);
  auto *file = findBy(scheduleLibrary(), uri, &LibraryFile::name);
  return file ? json::Value(file->text) : nullptr;
}
