// The language server: what it keeps, and what it can be asked.
#pragma once

#include "LspAnalysis.h"
#include "LspInput.h"
#include "LspJob.h"
#include "ppcc/Editor/Names.h"

namespace ppcc::lsp {

class Server {
public:
  Server(Session::Files files, raw_ostream &out)
      : disk(std::move(files)), out(out) {}

  int run();

private:
  using Params = const llvm::json::Object &;
  using Json = llvm::json::Value;
  using TextPtr = std::shared_ptr<const Text>;
  using OtherText = std::pair<std::string, TextPtr>; ///< With its address.

  // Lsp.cpp: messages, and what is wrong with texts.
  std::optional<int> take(llvm::json::Object &message);
  void configure(const llvm::json::Object *settings);
  void notice(StringRef method, Params params);
  void change(const std::string &uri, int64_t version, StringRef text);
  void close(const std::string &uri);
  void lookAgain(const std::string &first);
  void look(const std::string &uri);
  void finishLook();
  void publish(const std::string &uri, llvm::json::Array diagnostics);
  void send(llvm::json::Object message);
  /// The disk, with the texts that are open in the places of their files; `as`,
  /// if any, in the place of that of `path`.
  Session::Files filesWith(StringRef path, StringRef as) const;
  Setting settingFor(const std::string &uri, const Text &text) const;
  const Analysis &analysis(const std::string &uri);

  // LspNames.cpp: what words mean.
  struct Meaning {
    StringRef word;             ///< In the text that is asked about.
    std::string uri{};          ///< Of the text that declares it.
    TextPtr text = nullptr;     ///< Null for a word of the language, or none.
    size_t begin = 0, size = 0; ///< Of the declared name.
    std::string what{}, type{};
    bool isChecked = false; ///< The checker says so, and not the braces alone.
  };
  std::optional<Meaning> meaningAt(Params params);
  Meaning meaningOf(const std::string &uri, const Text &text, StringRef word);
  /// The texts of the files that a text imports, and of those that they import.
  std::vector<OtherText> imports(const std::string &uri,
                                 const Text &text) const;
  TextPtr textOfFile(StringRef path) const;
  std::optional<std::pair<std::string, StringRef>>
  importAt(Params params) const;
  std::vector<OtherText> closedWith(StringRef word) const;
  std::map<std::string, llvm::json::Array> places(const Meaning &meaning,
                                                  bool inWorkspace);

  std::string uriIn(Params params) const;
  TextPtr textOf(Params params) const;

#define ANSWER(Method, Function) Json Function(Params params);
#include "LspAnswers.def"
  using Answer = Json (Server::*)(Params);
  static const StringMap<Answer> &answers();

  /// What the last compilation of a text gave.
  struct Result {
    int64_t version = -1;
    llvm::json::Object values; ///< By the bytes where names are declared.
    int64_t chunks = 0;
  };

  /// A text that is open.
  struct Document {
    TextPtr text;
    int64_t version = 0;
    std::unique_ptr<Analysis> analysis; ///< Made when it is asked for.
    Result result;
    llvm::json::Array published;
    bool isSaved = false; ///< To be compiled as the command line does.
  };

  Session::Files disk;
  raw_ostream &out;
  std::set<std::string> folders; ///< The workspace.
  Input input;
  Job job;
  std::string jobUri;
  bool jobIsFull = false;
  std::map<std::string, Document> documents; ///< By their addresses.
  SmallVector<std::string, 4> changed;       ///< To be looked at, last first.
  std::vector<std::string> settings;
  bool isShutDown = false;
};

} // namespace ppcc::lsp
