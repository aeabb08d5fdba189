// `ppcc lsp`: the language server protocol, version 3.17, on the standard
// streams.
#include "Options.h"
#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Editor/Format.h"
#include "ppcc/Editor/Names.h"
#include "ppcc/Parse/Parser.h"
#include "ppcc/Support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

#include <poll.h>
#include <unistd.h>

using namespace ppcc;
using editor::Declaration;
using editor::Names;
using llvm::raw_ostream;
using llvm::StringRef;
namespace json = llvm::json;

namespace {

/// Messages of the protocol, read from the standard input.
class Input {
public:
  /// The next message; nothing at the end of the input, and when what comes is
  /// no message.
  std::optional<json::Value> next() {
    size_t length = 0;
    for (std::string line; readLine(line) && !line.empty();)
      if (StringRef value = line; value.consume_front("Content-Length:"))
        if (value.trim().getAsInteger(10, length) || length > mostBytes)
          return std::nullopt;
    while (bytes.size() - begin < length)
      if (!more())
        return std::nullopt;
    if (length == 0)
      return std::nullopt;
    auto value = json::parse(StringRef(bytes).substr(begin, length));
    begin += length;
    if (!value) {
      llvm::consumeError(value.takeError());
      return json::Value(nullptr); // Of the right length: the next may be good.
    }
    return std::move(*value);
  }

  /// Whether something has come that was not read.
  bool hasMore() const {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return begin != bytes.size() || poll(&input, 1, 0) > 0;
  }

private:
  static constexpr size_t mostBytes = size_t(64) << 20;

  bool readLine(std::string &line) {
    size_t end;
    while ((end = bytes.find('\n', begin)) == std::string::npos)
      if (bytes.size() - begin > mostBytes || !more())
        return false;
    line = StringRef(bytes).slice(begin, end).rtrim('\r').str();
    begin = end + 1;
    return true;
  }

  bool more() {
    bytes.erase(0, begin);
    begin = 0;
    char buffer[1 << 16];
    ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
    if (count > 0)
      bytes.append(buffer, count);
    return count > 0;
  }

  std::string bytes;
  size_t begin = 0; ///< Of what was not taken.
};

/// A text with its lines. Positions of the protocol are lines and columns from
/// 0, columns in units of UTF-16.
class Text {
public:
  explicit Text(std::string given) : text(std::move(given)) {
    for (size_t i = 0; i != text.size(); ++i)
      if (text[i] == '\n')
        lineStarts.push_back(i + 1);
  }

  StringRef all() const { return text; }

  json::Object position(size_t offset) const {
    size_t line =
        llvm::upper_bound(lineStarts, offset) - lineStarts.begin() - 1;
    return json::Object{
        {"line", int64_t(line)},
        {"character",
         int64_t(utf16Length(all().slice(lineStarts[line], offset)))}};
  }
  json::Object range(size_t begin, size_t end) const {
    return json::Object{{"start", position(begin)}, {"end", position(end)}};
  }
  json::Object range(StringRef word) const {
    size_t begin = word.begin() - text.data();
    return range(begin, begin + word.size());
  }

  size_t offset(const json::Object *position) const {
    int64_t line = position ? position->getInteger("line").value_or(0) : 0;
    int64_t column =
        position ? position->getInteger("character").value_or(0) : 0;
    if (line < 0 || size_t(line) >= lineStarts.size())
      return text.size();
    size_t at = lineStarts[line];
    while (column > 0 && at < text.size() && text[at] != '\n') {
      size_t bytes = llvm::getNumBytesForUTF8(uint8_t(text[at]));
      column -= bytes == 4 ? 2 : 1;
      at = std::min(at + bytes, text.size());
    }
    return at;
  }

private:
  static size_t utf16Length(StringRef bytes) {
    size_t units = 0;
    for (unsigned char c : bytes)
      units += (c & 0xC0) != 0x80 ? 1 + (c >= 0xF0) : 0;
    return units;
  }

  std::string text;
  std::vector<size_t> lineStarts{0};
};

std::string pathOf(StringRef uri) {
  if (!uri.consume_front("file://"))
    return uri.str();
  std::string path;
  for (size_t i = 0; i < uri.size(); ++i) {
    unsigned code;
    if (uri[i] == '%' && !uri.substr(i + 1, 2).getAsInteger(16, code)) {
      path += char(code);
      i += 2;
    } else {
      path += uri[i];
    }
  }
  return path;
}

std::string uriOf(StringRef path) {
  std::string uri = "file://";
  for (char c : path)
    if (llvm::isAlnum(c) || StringRef("/-._~").contains(c))
      uri += c;
    else
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return uri;
}

class Server {
public:
  Server(Session::Files files, raw_ostream &out)
      : disk(std::move(files)), out(out) {}

  int run() {
    while (std::optional<json::Value> message = input.next()) {
      if (json::Object *object = message->getAsObject())
        if (std::optional<int> code = take(*object))
          return *code;
      // Who types is answered first; then what has become of it is looked at.
      while (!changed.empty() && !input.hasMore())
        publish(changed.pop_back_val());
    }
    return isShutDown ? Success : Errors;
  }

private:
  std::optional<int> take(json::Object &message) {
    std::string method = message.getString("method").value_or("").str();
    json::Object none;
    json::Object &params =
        message.getObject("params") ? *message.getObject("params") : none;
    const json::Value *id = message.get("id");
    if (method == "exit")
      return isShutDown ? Success : Errors;
    if (!id) {
      notice(method, params);
      return std::nullopt;
    }
    if (method.empty())
      return std::nullopt; // An answer.
    auto found = answers().find(method);
    json::Object reply{{"jsonrpc", "2.0"}, {"id", *id}};
    if (found == answers().end())
      reply["error"] = json::Object{{"code", -32601},
                                    {"message", "no method " + method}};
    else
      reply["result"] = (this->*found->second)(params);
    send(std::move(reply));
    return std::nullopt;
  }

  using Answer = json::Value (Server::*)(const json::Object &);
  static const llvm::StringMap<Answer> &answers() {
    static const llvm::StringMap<Answer> all = {
        {"initialize", &Server::initialize},
        {"shutdown", &Server::shutDown},
        {"textDocument/definition", &Server::definition},
        {"textDocument/references", &Server::references},
        {"textDocument/documentHighlight", &Server::references},
        {"textDocument/rename", &Server::rename},
        {"textDocument/hover", &Server::hover},
        {"textDocument/completion", &Server::completion},
        {"textDocument/documentSymbol", &Server::symbols},
        {"textDocument/foldingRange", &Server::folds},
        {"textDocument/formatting", &Server::formatting}};
    return all;
  }

  // ---- The state ----

  json::Value initialize(const json::Object &) {
    return json::Object{
        {"serverInfo",
         json::Object{{"name", "ppcc"}, {"version", versionText()}}},
        {"capabilities",
         json::Object{
             {"textDocumentSync", 1}, // Whole texts.
             {"definitionProvider", true},
             {"referencesProvider", true},
             {"documentHighlightProvider", true},
             {"renameProvider", true},
             {"hoverProvider", true},
             {"completionProvider", json::Object{}},
             {"documentSymbolProvider", true},
             {"foldingRangeProvider", true},
             {"documentFormattingProvider", true}}}};
  }

  json::Value shutDown(const json::Object &) {
    isShutDown = true;
    return nullptr;
  }

  void notice(StringRef method, const json::Object &params) {
    const json::Object *document = params.getObject("textDocument");
    if (!document)
      return;
    std::string uri = document->getString("uri").value_or("").str();
    versions[uri] = document->getInteger("version").value_or(0);
    if (method == "textDocument/didOpen") {
      change(uri, document->getString("text").value_or(""));
    } else if (method == "textDocument/didChange") {
      const json::Array *changes = params.getArray("contentChanges");
      if (changes && !changes->empty())
        if (const json::Object *last = changes->back().getAsObject())
          change(uri, last->getString("text").value_or(""));
    } else if (method == "textDocument/didClose") {
      texts.erase(uri);
      versions.erase(uri);
      llvm::erase(changed, uri);
      sendDiagnostics(uri, {});
    }
  }

  void change(const std::string &uri, StringRef text) {
    texts.insert_or_assign(uri, Text(json::fixUTF8(text)));
    // Others may import it.
    for (const auto &[other, ignored] : texts)
      if (!llvm::is_contained(changed, other))
        changed.push_back(other);
    llvm::erase(changed, uri);
    changed.push_back(uri);
  }

  // ---- What is wrong ----

  void publish(const std::string &uri) {
    std::string path = pathOf(uri);
    const Text &text = texts.at(uri);
    Session session(filesWithTexts());
    session.diags.maxErrors = 100;
    json::Array found;
    std::string complaint;
    if (compileFor(path, text, session, complaint))
      for (const Diagnostic &one : session.found)
        found.push_back(diagnostic(one, session.sources, path, text));
    else
      found.push_back(json::Object{{"range", text.range(0, 0)},
                                   {"severity", 1},
                                   {"source", "ppcc"},
                                   {"message", complaint}});
    sendDiagnostics(uri, std::move(found));
  }

  /// As a line `// ppcc: -D P=8 -D M=20` of the text says. False when that line
  /// is wrong.
  static bool compileFor(const std::string &path, const Text &text,
                         Session &session, std::string &complaint) {
    std::vector<std::string> words{"ppcc", path};
    for (StringRef rest = text.all(); !rest.empty();) {
      StringRef line;
      std::tie(line, rest) = rest.split('\n');
      if (line.consume_front("// ppcc:")) {
        llvm::SmallVector<StringRef> given;
        line.split(given, ' ', -1, /*KeepEmpty=*/false);
        for (StringRef word : given)
          words.push_back(word.trim().str());
      }
    }
    std::vector<const char *> args;
    for (const std::string &word : words)
      args.push_back(word.c_str());
    llvm::raw_string_ostream err(complaint);
    Options options;
    if (parseOptions(args, options, llvm::nulls(), err))
      return false;
    constexpr uint64_t mostActions = 1'000'000; // While somebody types.
    options.request.limits.maxActions =
        std::min(options.request.limits.maxActions, mostActions);
    compile(options.request, session);
    return true;
  }

  /// The disk, with the texts that are open in the places of their files.
  Session::Files filesWithTexts() const {
    auto memory = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
    for (const auto &[uri, text] : texts)
      memory->addFile(pathOf(uri), 0,
                      llvm::MemoryBuffer::getMemBufferCopy(text.all()));
    auto all = llvm::makeIntrusiveRefCnt<llvm::vfs::OverlayFileSystem>(disk);
    all->pushOverlay(memory);
    return all;
  }

  json::Object diagnostic(const Diagnostic &one, const SourceManager &sources,
                          StringRef path, const Text &text) const {
    auto isHere = [&](const Place &place) {
      return place.range.valid() &&
             sources.position(place.range.begin).file == path;
    };
    auto rangeOf = [&](SourceRange range) {
      size_t base = sources.loc(*sources.lookup(path), 0).raw;
      size_t begin = range.begin.raw - base, size = text.all().size();
      size_t end = range.end.valid() ? range.end.raw - base : begin;
      return text.range(std::min(begin, size), std::min(end, size));
    };
    const DiagInfo &info = one.info();
    std::string words = one.message;
    json::Array related;
    for (const Note &note : one.notes)
      if (isHere(note.place))
        related.push_back(json::Object{
            {"location", json::Object{{"uri", uriOf(path)},
                                      {"range", rangeOf(note.place.range)}}},
            {"message", json::fixUTF8(note.text)}});
      else
        words += "\n" + note.text;
    if (!info.hint.empty())
      words += "\n" + info.hint.str();
    bool here = isHere(one.place);
    if (!here && one.place.range.valid()) {
      Position place = sources.position(one.place.range.begin);
      words = fmt::format("{}:{}: {}", place.file.str(), place.line, words);
    }
    return json::Object{
        {"range", here ? rangeOf(one.place.range) : text.range(0, 0)},
        {"severity", info.severity == Severity::Error ? 1 : 2},
        {"code", info.code},
        {"source", "ppcc"},
        {"message", json::fixUTF8(words)},
        {"relatedInformation", std::move(related)}};
  }

  // ---- Names ----

  /// The text that a request is about, and the byte in it.
  const Text *textOf(const json::Object &params) const {
    const json::Object *document = params.getObject("textDocument");
    auto found =
        document ? texts.find(document->getString("uri").value_or("").str())
                 : texts.end();
    return found == texts.end() ? nullptr : &found->second;
  }

  /// What a word means: in the text, or in a file that it imports or the
  /// library of rules.
  struct Meaning {
    StringRef word;
    const Declaration *declaration = nullptr;
    std::string uri; ///< Of the text that declares it.
    const Text *text = nullptr;
    const Names *names = nullptr;
  };

  /// Calls `then` with what stands at the position of a request.
  template <class Fn>
  json::Value at(const json::Object &params, Fn then) const {
    const Text *text = textOf(params);
    if (!text)
      return nullptr;
    Names names(text->all());
    StringRef word =
        names.wordAt(text->offset(params.getObject("position")));
    if (word.empty())
      return nullptr;
    Meaning meaning{word, names.meaning(word),
                    params.getObject("textDocument")
                        ->getString("uri")
                        .value_or("")
                        .str(),
                    text, &names};
    if (meaning.declaration)
      return then(meaning);
    for (auto &[uri, other] : imports(meaning.uri, *text)) {
      Names theirs(other.all());
      for (const Declaration &one : theirs.declarations())
        if (one.isAtFileLevel && one.name == word)
          return then(Meaning{word, &one, uri, &other, &theirs});
    }
    return then(meaning);
  }

  /// The texts of the files that a text imports, one deep.
  std::vector<std::pair<std::string, Text>> imports(StringRef uri,
                                                    const Text &text) const {
    std::vector<std::pair<std::string, Text>> found;
    auto files = filesWithTexts();
    std::vector<editor::Token> tokens = editor::tokenize(text.all());
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      if (!tokens[i].is("import") ||
          tokens[i + 1].kind != editor::TokenKind::String)
        continue;
      StringRef name = tokens[i + 1].text.trim('"');
      llvm::SmallString<128> path(llvm::sys::path::parent_path(pathOf(uri)));
      llvm::sys::path::append(path, name);
      if (auto buffer = files->getBufferForFile(path))
        found.emplace_back(uriOf(path), Text((*buffer)->getBuffer().str()));
      else
        for (const LibraryFile &file : scheduleLibrary())
          if (file.name == name)
            found.emplace_back("", Text(file.text.str()));
    }
    return found;
  }

  json::Value definition(const json::Object &params) {
    return at(params, [](const Meaning &meaning) -> json::Value {
      if (!meaning.declaration || meaning.uri.empty())
        return nullptr;
      return json::Object{
          {"uri", meaning.uri},
          {"range", meaning.text->range(meaning.declaration->name)}};
    });
  }

  json::Value references(const json::Object &params) {
    return at(params, [&](const Meaning &meaning) -> json::Value {
      json::Array places;
      if (meaning.declaration && meaning.text == textOf(params))
        for (StringRef word : meaning.names->occurrences(*meaning.declaration))
          places.push_back(json::Object{{"uri", meaning.uri},
                                        {"range", meaning.text->range(word)}});
      return places;
    });
  }

  json::Value rename(const json::Object &params) {
    std::string name = params.getString("newName").value_or("").str();
    return at(params, [&](const Meaning &meaning) -> json::Value {
      std::vector<editor::Token> tokens = editor::tokenize(name);
      bool isName = tokens.size() == 1 && tokens.front().isWord() &&
                    !llvm::is_contained(keywords(), name);
      if (!isName || !meaning.declaration || meaning.text != textOf(params))
        return nullptr;
      json::Array edits;
      for (StringRef word : meaning.names->occurrences(*meaning.declaration))
        edits.push_back(json::Object{{"range", meaning.text->range(word)},
                                     {"newText", name}});
      return json::Object{
          {"changes", json::Object{{meaning.uri, std::move(edits)}}}};
    });
  }

  json::Value hover(const json::Object &params) {
    return at(params, [](const Meaning &meaning) -> json::Value {
      if (!meaning.declaration)
        return nullptr;
      StringRef all = meaning.text->all(), name = meaning.declaration->name;
      size_t place = name.begin() - all.begin();
      size_t begin = all.take_front(place).rfind('\n') + 1;
      StringRef line = all.drop_front(begin).split('\n').first;
      std::string words = "```pp\n" + line.trim().str() + "\n```";
      std::string comment = meaning.names->comment(*meaning.declaration);
      return json::Object{
          {"contents",
           json::Object{{"kind", "markdown"},
                        {"value", comment.empty() ? words
                                                  : words + "\n" + comment}}}};
    });
  }

  json::Value completion(const json::Object &params) {
    const Text *text = textOf(params);
    json::Array items;
    llvm::StringMap<char> seen;
    auto add = [&](StringRef label, int kind, StringRef detail) {
      if (seen.try_emplace(label).second)
        items.push_back(json::Object{
            {"label", label}, {"kind", kind}, {"detail", detail}});
    };
    constexpr int function = 3, variable = 6, keyword = 14, constant = 21;
    if (text) {
      Names names(text->all());
      const char *place =
          text->all().begin() + text->offset(params.getObject("position"));
      for (const Declaration &one : llvm::reverse(names.declarations()))
        if (one.isSeenAt(place))
          add(one.name, one.isAtFileLevel ? function : variable, one.what);
      StringRef uri = *params.getObject("textDocument")->getString("uri");
      for (auto &[ignored, other] : imports(uri, *text)) {
        Names theirs(other.all());
        for (const Declaration &one : theirs.declarations())
          if (one.isAtFileLevel)
            add(one.name, function, one.what);
      }
    }
    for (StringRef kind : {"F", "B", "I", "W"})
      add(kind, constant, "action");
    for (StringRef word : keywords())
      add(word, keyword, "");
    return items;
  }

  json::Value symbols(const json::Object &params) {
    const Text *text = textOf(params);
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

  json::Value folds(const json::Object &params) {
    const Text *text = textOf(params);
    if (!text)
      return nullptr;
    json::Array all;
    std::vector<int64_t> begins;
    for (const editor::Token &token : editor::tokenize(text->all())) {
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

  json::Value formatting(const json::Object &params) {
    const Text *text = textOf(params);
    if (!text)
      return nullptr;
    std::string formatted = editor::format(text->all());
    json::Array edits;
    if (formatted != text->all())
      edits.push_back(
          json::Object{{"range", text->range(0, text->all().size())},
                       {"newText", std::move(formatted)}});
    return edits;
  }

  // ---- Answers ----

  void sendDiagnostics(const std::string &uri, json::Array found) {
    json::Object params{{"uri", uri}, {"diagnostics", std::move(found)}};
    if (auto version = versions.find(uri); version != versions.end())
      params["version"] = version->second;
    send(json::Object{{"jsonrpc", "2.0"},
                      {"method", "textDocument/publishDiagnostics"},
                      {"params", std::move(params)}});
  }

  void send(json::Object message) {
    std::string text;
    llvm::raw_string_ostream(text) << json::Value(std::move(message));
    out << "Content-Length: " << text.size() << "\r\n\r\n" << text;
    out.flush();
  }

  Session::Files disk;
  raw_ostream &out;
  Input input;
  std::map<std::string, Text> texts; ///< By their URIs.
  std::map<std::string, int64_t> versions;
  llvm::SmallVector<std::string, 4> changed; ///< To be compiled, the last first.
  bool isShutDown = false;
};

} // namespace

int ppcc::runLsp(llvm::ArrayRef<const char *> args, Session::Files fs,
                 raw_ostream &out, raw_ostream &err) {
  OptionParser parser("ppcc lsp",
                      "Serves an editor: diagnostics while one types, names, "
                      "completion, the style. A line `// ppcc: -D P=8` of a "
                      "schedule gives the options that it is compiled with");
  if (std::optional<int> code = parser.parse(args, out, err))
    return *code;
  return Server(std::move(fs), out).run();
}
