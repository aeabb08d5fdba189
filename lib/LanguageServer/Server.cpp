// What comes in and goes out: messages, texts, and what is wrong with them.
#include "Server.h"
#include "ppcc/Support/JsonDepth.h"

#include <poll.h>
#include <unistd.h>

using namespace ppcc;
using namespace ppcc::lsp;
namespace json = llvm::json;

/// Of a schedule while somebody types; what is saved may have more.
static constexpr uint64_t maxActionsWhileTyping = 200'000;
static constexpr unsigned maxSecondsWhileTyping = 5, maxSecondsWhenSaved = 30;

bool Server::run() {
  while (true) {
    if (std::optional<json::Value> message = input.take()) {
      if (const json::Object *object = message->getAsObject())
        if (handleMessage(*object))
          return isShutDown;
      continue;
    }
    if (input.isAtEnd())
      return isShutDown;
    // Who types is answered first; then what has become of it is looked at.
    bool canCompile = !job.isRunning() && !dirty.empty();
    pollfd wait[] = {{STDIN_FILENO, POLLIN, 0}, {job.descriptor(), POLLIN, 0}};
    int ready = poll(wait, 2, canCompile ? 0 : -1);
    if (ready == 0)
      compileInBackground(*dirty.pop_back_val());
    else if (ready > 0 && wait[0].revents)
      input.fill();
    else if (ready > 0 && job.read())
      finishCompile();
  }
}

const json::Object &lsp::objectIn(const json::Object &message, StringRef key) {
  static const json::Object none;
  const json::Object *found = message.getObject(key);
  return found ? *found : none;
}

static std::string uriIn(const json::Object &params) {
  return objectIn(params, "textDocument").getString("uri").value_or("").str();
}

bool Server::handleMessage(const json::Object &message) {
  StringRef method = message.getString("method").value_or("");
  const json::Object &params = objectIn(message, "params");
  const json::Value *id = message.get("id");
  if (method == "exit")
    return true;
  if (!id) {
    handleNotification(method, params);
  } else if (!method.empty()) { // Else it is an answer.
    json::Object reply{{"jsonrpc", "2.0"}, {"id", *id}};
    if (auto result = handleRequest(method, params))
      reply["result"] = std::move(*result);
    else
      reply["error"] = json::Object{{"code", -32601},
                                    {"message", "no method " + method.str()}};
    send(std::move(reply));
  }
  return false;
}

std::optional<json::Value> Server::handleRequest(StringRef method,
                                                 Params params) {
  Document *document = find(uriIn(params));
#define REQUEST(Method, Function)                                              \
  if (method == Method)                                                        \
    return Function(params);
#define DOCUMENT_REQUEST(Method, Function, Type)                               \
  if (method == Method)                                                        \
    return document ? Function(Type##Params(*document, params)) : nullptr;
#include "Requests.def"
  return std::nullopt;
}

/// The paths of `[{"uri": "file:///home/me/schedules", "name": "schedules"}]`.
static std::vector<std::string> foldersIn(const json::Array *given) {
  std::vector<std::string> paths;
  for (const json::Value &one : given ? *given : json::Array())
    if (const json::Object *folder = one.getAsObject())
      paths.push_back(pathOf(folder->getString("uri").value_or("")));
  return paths;
}

// Texts come whole: 1.
static constexpr StringRef capabilities = R"({
  "textDocumentSync": {"openClose": true, "change": 1, "save": true},
  "workspace": {
    "workspaceFolders": {"supported": true, "changeNotifications": true}
  },
  "definitionProvider": true,
  "referencesProvider": true,
  "documentHighlightProvider": true,
  "renameProvider": {"prepareProvider": true},
  "hoverProvider": true,
  "completionProvider": {"triggerCharacters": ["(", "\""]},
  "signatureHelpProvider": {"triggerCharacters": ["(", ","]},
  "codeActionProvider": {"codeActionKinds": ["quickfix"]},
  "documentSymbolProvider": true,
  "foldingRangeProvider": true,
  "documentFormattingProvider": true
})";

json::Value Server::initialize(Params params) {
  configure(params.getObject("initializationOptions"));
  for (std::string &path : foldersIn(params.getArray("workspaceFolders")))
    folders.insert(std::move(path));
  if (auto root = params.getString("rootUri"); root && folders.empty())
    folders.insert(pathOf(*root));
  json::Value can = llvm::cantFail(json::parse(capabilities));
  (*can.getAsObject())["semanticTokensProvider"] = json::Object{
      {"legend", json::Object{{"tokenTypes", json::Array(tokenTypes)},
                              {"tokenModifiers", json::Array{}}}},
      {"full", true}};
  return json::Object{
      {"serverInfo", json::Object{{"name", "ppcc"}, {"version", version}}},
      {"capabilities", std::move(can)}};
}

json::Value Server::shutDown(Params) {
  isShutDown = true;
  return nullptr;
}

/// `{"options": ["-D", "P=8"]}`, by itself or as `ppcc` of all settings.
void Server::configure(const json::Object *given) {
  if (!given)
    return;
  if (const json::Object *own = given->getObject("ppcc"))
    given = own;
  settings.clear();
  if (const json::Array *options = given->getArray("options"))
    for (const json::Value &one : *options)
      settings.push_back(one.getAsString().value_or("").str());
  recompileAll();
}

void Server::handleNotification(StringRef method, Params params) {
  if (method == "workspace/didChangeConfiguration")
    return configure(params.getObject("settings"));
  if (method == "workspace/didChangeWorkspaceFolders") {
    const json::Object &event = objectIn(params, "event");
    for (const std::string &path : foldersIn(event.getArray("removed")))
      folders.erase(path);
    for (std::string &path : foldersIn(event.getArray("added")))
      folders.insert(std::move(path));
    return;
  }
  std::string uri = uriIn(params);
  const json::Object &given = objectIn(params, "textDocument");
  if (method == "textDocument/didOpen" && !uri.empty()) {
    change(uri, given, given);
    documents[uri].isSaved = true;
  }
  Document *document = find(uri);
  if (!document)
    return;
  if (method == "textDocument/didSave") {
    document->isSaved = true;
    recompileAll(document);
  } else if (method == "textDocument/didChange") {
    const json::Array *changes = params.getArray("contentChanges");
    if (changes && !changes->empty())
      if (const json::Object *last = changes->back().getAsObject())
        change(uri, given, *last);
  } else if (method == "textDocument/didClose") {
    publish(*document, {});
    documents.erase(uri);
    recompileAll();
  }
}

void Server::change(const std::string &uri, Params given, Params text) {
  Document &document = documents[uri];
  document.uri = uri;
  document.path = pathOf(uri);
  document.text = std::make_shared<const Text>(
      json::fixUTF8(text.getString("text").value_or("")));
  document.version = given.getInteger("version").value_or(0);
  document.isSaved = false;
  recompileAll(&document);
}

/// At all texts, since one may import another, and at `first` before others.
void Server::recompileAll(Document *first) {
  job.stop();
  dirty.clear();
  for (auto &[uri, document] : documents) {
    document.analysis.reset();
    if (&document != first)
      dirty.push_back(&document);
  }
  if (first)
    dirty.push_back(first);
}

void Server::compileInBackground(Document &document) {
  const Text &text = *document.text;
  CompileSettings setting = compileSettingsFor(document.path, text);
  if (!setting.errorText.empty()) {
    json::Array one;
    one.push_back(diagnosticAt(text.range(setting.line), setting.errorText));
    return publish(document, std::move(one));
  }
  const Analysis &known = analysis(document);
  if (!known.hasNoErrors)
    return publish(document, known.diagnostics);
  compiling = &document;
  jobIsForSaved = document.isSaved;
  uint64_t &maxPreviewActions = setting.request.limits.maxActions;
  if (!jobIsForSaved)
    maxPreviewActions = std::min(maxPreviewActions, maxActionsWhileTyping);
  bool isStarted =
      job.start(jobIsForSaved ? maxSecondsWhenSaved : maxSecondsWhileTyping,
                [&](raw_ostream &stream) {
                  writeCompiled(document.path, text, setting.request,
                                filesWith(document.path, text.all()), stream);
                });
  if (!isStarted)
    publish(document, known.diagnostics);
}

void Server::finishCompile() {
  Document &document = *compiling;
  auto reply = json::parse(job.output);
  const json::Object *result = reply ? reply->getAsObject() : nullptr;
  if (!reply)
    llvm::consumeError(reply.takeError());
  json::Array diagnostics;
  if (job.outcome == Subprocess::Outcome::Succeeded && !result)
    job.outcome = Subprocess::Outcome::Crashed;
  if (job.outcome != Subprocess::Outcome::Succeeded) {
    // Of what is only typed nobody asked for the whole.
    diagnostics = analysis(document).diagnostics;
    if (jobIsForSaved || job.outcome == Subprocess::Outcome::Crashed)
      diagnostics.push_back(
          diagnosticAt(document.text->range(0, 0), job.errorText()));
    return publish(document, std::move(diagnostics));
  }
  for (const json::Value &one : *result->getArray("diagnostics")) {
    // Limits that the command line does not have.
    StringRef code = one.getAsObject()->getString("code").value_or("");
    if (jobIsForSaved ||
        (code != "E0412" && code != "E0413" && code != "E0446"))
      diagnostics.push_back(one);
  }
  document.compiledVersion = document.version;
  document.values = *result->getObject("values");
  document.chunks = result->getInteger("chunks").value_or(0);
  document.isSaved = false;
  publish(document, std::move(diagnostics));
}

Session::Files Server::filesWith(StringRef path, StringRef as) const {
  auto memory = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  auto add = [&](const std::string &name, StringRef text) {
    memory->addFile(name, 0, llvm::MemoryBuffer::getMemBufferCopy(text));
  };
  for (const auto &[uri, document] : documents)
    if (document.path != path)
      add(document.path, document.text->all());
  add(path.str(), as);
  auto all = llvm::makeIntrusiveRefCnt<llvm::vfs::OverlayFileSystem>(disk);
  all->pushOverlay(memory);
  return all;
}

std::unique_ptr<Analysis> Server::analyze(StringRef path,
                                          const Text &text) const {
  return std::make_unique<Analysis>(path, text, compileSettingsFor(path, text),
                                    filesWith(path, text.all()));
}

const Analysis &Server::analysis(Document &document) {
  if (!document.analysis)
    document.analysis = analyze(document.path, *document.text);
  return *document.analysis;
}

Document *Server::find(const std::string &uri) {
  auto found = documents.find(uri);
  return found == documents.end() ? nullptr : &found->second;
}

std::string Server::uriOf(StringRef path) const {
  for (const auto &[uri, document] : documents)
    if (document.path == path)
      return uri;
  return lsp::uriOf(path);
}

void Server::publish(Document &document, json::Array diagnostics) {
  document.published = std::move(diagnostics);
  send(json::Object{
      {"jsonrpc", "2.0"},
      {"method", "textDocument/publishDiagnostics"},
      {"params",
       json::Object{{"uri", document.uri},
                    {"version", document.version},
                    {"diagnostics", json::Array(document.published)}}}});
}

void Server::send(json::Object message) {
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(message));
  out << "Content-Length: " << text.size() << "\r\n\r\n" << text;
  out.flush();
}

void Server::warn(StringRef message) {
  send(json::Object{{"jsonrpc", "2.0"},
                    {"method", "window/showMessage"},
                    {"params", json::Object{{"type", 2}, // A warning.
                                            {"message", message}}}});
}

bool lsp::serve(Session::Files files, StringRef version,
                ReadOptions readOptions, raw_ostream &out) {
  return Server(std::move(files), version, readOptions, out).run();
}

namespace json = llvm::json;

std::optional<json::Value> MessageReader::take() {
  StringRef rest = StringRef(bytes).drop_front(begin);
  size_t head = rest.find("\r\n\r\n"), length = 0;
  if (head == StringRef::npos) {
    ended |= rest.size() > maxBytes;
    return std::nullopt;
  }
  for (StringRef line : llvm::split(rest.take_front(head), "\r\n"))
    if (line.consume_front("Content-Length:") &&
        (line.trim().getAsInteger(10, length) || length > maxBytes))
      length = 0;
  rest = rest.drop_front(head + 4);
  if (length == 0)
    ended = true;
  if (length == 0 || rest.size() < length)
    return std::nullopt;
  rest = rest.take_front(length);
  begin += head + 4 + length;
  if (isJsonDeeper(rest, 256))
    return json::Value(nullptr);
  auto value = json::parse(rest);
  if (value)
    return std::move(*value);
  llvm::consumeError(value.takeError());
  return json::Value(nullptr);
}

void MessageReader::fill() {
  bytes.erase(0, begin);
  begin = 0;
  char buffer[1 << 16];
  ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
  if (count > 0)
    bytes.append(buffer, count);
  else if (count == 0 || errno != EINTR)
    ended = true;
}
