// `ppcc lsp`: the language server protocol, version 3.17, on the standard
// streams.
#include "LspServer.h"

#include <poll.h>
#include <unistd.h>

using namespace ppcc;
using namespace ppcc::lsp;
namespace json = llvm::json;

/// Of a schedule while somebody types; what is saved may have more.
static constexpr uint64_t mostTypedActions = 200'000;
static constexpr unsigned mostTypedSeconds = 5, mostSavedSeconds = 30;

const StringMap<Server::Answer> &Server::answers() {
  static const StringMap<Answer> all = {
#define ANSWER(Method, Function) {Method, &Server::Function},
#include "LspAnswers.def"
  };
  return all;
}

int Server::run() {
  while (true) {
    if (std::optional<json::Value> message = input.take()) {
      if (json::Object *object = message->getAsObject())
        if (std::optional<int> code = take(*object))
          return *code;
      continue;
    }
    if (input.isAtEnd())
      return isShutDown ? Success : Errors;
    // Who types is answered first; then what has become of it is looked at.
    if (!job.isRunning() && !changed.empty() && !input.hasMore()) {
      look(changed.pop_back_val());
      continue;
    }
    pollfd wait[] = {{STDIN_FILENO, POLLIN, 0}, {job.descriptor(), POLLIN, 0}};
    if (poll(wait, job.isRunning() ? 2 : 1, -1) < 0)
      continue;
    if (wait[0].revents)
      input.fill();
    else if (job.isRunning() && wait[1].revents && job.read())
      finishLook();
  }
}

std::optional<int> Server::take(json::Object &message) {
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
    reply["error"] =
        json::Object{{"code", -32601}, {"message", "no method " + method}};
  else
    reply["result"] = (this->*found->second)(params);
  send(std::move(reply));
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

json::Value Server::initialize(Params params) {
  configure(params.getObject("initializationOptions"));
  for (std::string &path : foldersIn(params.getArray("workspaceFolders")))
    folders.insert(std::move(path));
  if (auto root = params.getString("rootUri"); root && folders.empty())
    folders.insert(pathOf(*root));
  json::Array tokenTypes{"keyword",  "comment",   "string", "number",
                         "operator", "function",  "macro",  "variable",
                         "type",     "parameter", "class",  "enumMember"};
  return json::Object{
      {"serverInfo",
       json::Object{{"name", "ppcc"}, {"version", versionText()}}},
      {"capabilities",
       json::Object{
           {"textDocumentSync", json::Object{{"openClose", true},
                                             {"change", 1}, // Whole texts.
                                             {"save", true}}},
           {"workspace",
            json::Object{{"workspaceFolders",
                          json::Object{{"supported", true},
                                       {"changeNotifications", true}}}}},
           {"definitionProvider", true},
           {"referencesProvider", true},
           {"documentHighlightProvider", true},
           {"renameProvider", json::Object{{"prepareProvider", true}}},
           {"hoverProvider", true},
           {"completionProvider",
            json::Object{{"triggerCharacters", json::Array{"(", "\""}}}},
           {"signatureHelpProvider",
            json::Object{{"triggerCharacters", json::Array{"(", ","}}}},
           {"codeActionProvider",
            json::Object{{"codeActionKinds", json::Array{"quickfix"}}}},
           {"documentSymbolProvider", true},
           {"semanticTokensProvider",
            json::Object{
                {"legend", json::Object{{"tokenTypes", std::move(tokenTypes)},
                                        {"tokenModifiers", json::Array{}}}},
                {"full", true}}},
           {"foldingRangeProvider", true},
           {"documentFormattingProvider", true}}}};
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
  if (!documents.empty())
    lookAgain(documents.begin()->first);
}

void Server::notice(StringRef method, Params params) {
  if (method == "workspace/didChangeConfiguration")
    return configure(params.getObject("settings"));
  if (method == "workspace/didChangeWorkspaceFolders") {
    const json::Object none, *event = params.getObject("event");
    event = event ? event : &none;
    for (const std::string &path : foldersIn(event->getArray("removed")))
      folders.erase(path);
    for (std::string &path : foldersIn(event->getArray("added")))
      folders.insert(std::move(path));
    return;
  }
  std::string uri = uriIn(params);
  auto known = documents.find(uri);
  if (method == "textDocument/didSave" && known != documents.end()) {
    known->second.isSaved = true;
    return lookAgain(uri);
  }
  const json::Object *document = params.getObject("textDocument");
  if (!document)
    return;
  int64_t version = document->getInteger("version").value_or(0);
  if (method == "textDocument/didOpen") {
    change(uri, version, document->getString("text").value_or(""));
    documents[uri].isSaved = true;
  } else if (method == "textDocument/didChange" && known != documents.end()) {
    const json::Array *changes = params.getArray("contentChanges");
    if (changes && !changes->empty())
      if (const json::Object *last = changes->back().getAsObject())
        change(uri, version, last->getString("text").value_or(""));
  } else if (method == "textDocument/didClose") {
    close(uri);
  }
}

void Server::change(const std::string &uri, int64_t version, StringRef text) {
  Document &document = documents[uri];
  document.text = std::make_shared<const Text>(json::fixUTF8(text));
  document.version = version;
  document.isSaved = false;
  lookAgain(uri);
}

void Server::close(const std::string &uri) {
  publish(uri, {});
  documents.erase(uri);
  lookAgain("");
}

/// At all texts, since one may import another, and at `first` before others.
void Server::lookAgain(const std::string &first) {
  job.stop();
  changed.clear();
  for (auto &[uri, document] : documents) {
    document.analysis.reset();
    if (uri != first)
      changed.push_back(uri);
  }
  if (documents.count(first))
    changed.push_back(first);
}

void Server::look(const std::string &uri) {
  const Text &text = *documents.at(uri).text;
  Setting setting = settingFor(uri, text);
  if (!setting.complaint.empty()) {
    json::Object range =
        setting.line.empty() ? text.range(0, 0) : text.range(setting.line);
    json::Array one;
    one.push_back(diagnosticAt(std::move(range), setting.complaint));
    return publish(uri, std::move(one));
  }
  const Analysis &known = analysis(uri);
  if (!known.isGood)
    return publish(uri, known.diagnostics);
  jobUri = uri;
  jobIsFull = documents.at(uri).isSaved;
  Request request = setting.request;
  if (!jobIsFull)
    request.limits.maxActions =
        std::min(request.limits.maxActions, mostTypedActions);
  std::string path = pathOf(uri);
  bool isStarted = job.start(
      jobIsFull ? mostSavedSeconds : mostTypedSeconds,
      [&](raw_ostream &stream) {
        writeCompiled(path, text, request, filesWith(path, text.all()), stream);
      });
  if (!isStarted)
    publish(uri, known.diagnostics);
}

void Server::finishLook() {
  const Analysis &known = analysis(jobUri);
  auto said = json::parse(job.said);
  const json::Object *result = said ? said->getAsObject() : nullptr;
  if (!said)
    llvm::consumeError(said.takeError());
  if (!job.isGood() || !result) {
    // Of what is only typed nobody asked for the whole.
    json::Array diagnostics = known.diagnostics;
    if (jobIsFull || !job.isTooLong())
      diagnostics.push_back(diagnosticAt(
          documents.at(jobUri).text->range(0, 0),
          job.isTooLong()
              ? fmt::format("the compiler was given up after {} s; `ppcc "
                            "check` has no such limit",
                            mostSavedSeconds)
              : "the compiler crashed: this is a bug in it"));
    return publish(jobUri, std::move(diagnostics));
  }
  json::Array diagnostics;
  for (const json::Value &one : *result->getArray("diagnostics")) {
    // Limits that the command line does not have.
    StringRef code = one.getAsObject()->getString("code").value_or("");
    if (jobIsFull || (code != "E0412" && code != "E0413" && code != "E0446"))
      diagnostics.push_back(one);
  }
  Document &document = documents.at(jobUri);
  document.result = {document.version, *result->getObject("values"),
                     result->getInteger("chunks").value_or(0)};
  document.isSaved = false;
  publish(jobUri, std::move(diagnostics));
}

Session::Files Server::filesWith(StringRef path, StringRef as) const {
  auto memory = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  auto add = [&](const std::string &name, StringRef text) {
    memory->addFile(name, 0, llvm::MemoryBuffer::getMemBufferCopy(text));
  };
  for (const auto &[uri, document] : documents)
    if (std::string name = pathOf(uri); name != path)
      add(name, document.text->all());
  add(path.str(), as);
  auto all = llvm::makeIntrusiveRefCnt<llvm::vfs::OverlayFileSystem>(disk);
  all->pushOverlay(memory);
  return all;
}

Setting Server::settingFor(const std::string &uri, const Text &text) const {
  return settingOf(pathOf(uri), text.all(), settings);
}

const Analysis &Server::analysis(const std::string &uri) {
  auto &[text, version, known, result, published, isSaved] = documents.at(uri);
  if (!known) {
    std::string path = pathOf(uri);
    known = std::make_unique<Analysis>(
        path, *text, settingFor(uri, *text),
        [&](StringRef as) { return filesWith(path, as); });
  }
  return *known;
}

std::string Server::uriIn(Params params) const {
  const json::Object *document = params.getObject("textDocument");
  return document ? document->getString("uri").value_or("").str() : "";
}

Server::TextPtr Server::textOf(Params params) const {
  auto found = documents.find(uriIn(params));
  return found == documents.end() ? nullptr : found->second.text;
}

void Server::publish(const std::string &uri, json::Array diagnostics) {
  json::Object params{{"uri", uri},
                      {"diagnostics", json::Array(diagnostics)}};
  if (auto found = documents.find(uri); found != documents.end()) {
    params["version"] = found->second.version;
    found->second.published = std::move(diagnostics);
  }
  send(json::Object{{"jsonrpc", "2.0"},
                    {"method", "textDocument/publishDiagnostics"},
                    {"params", std::move(params)}});
}

void Server::send(json::Object message) {
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(message));
  out << "Content-Length: " << text.size() << "\r\n\r\n" << text;
  out.flush();
}

int ppcc::runLsp(ArrayRef<const char *> args, Session::Files fs,
                 raw_ostream &out, raw_ostream &err) {
  OptionParser parser("ppcc lsp",
                      "Serves an editor: diagnostics while one types, names, "
                      "completion, the style. A line `// ppcc: -D P=8` of a "
                      "schedule gives the options that it is compiled with");
  if (std::optional<int> code = parser.parse(args, out, err))
    return *code;
  return Server(std::move(fs), out).run();
}
