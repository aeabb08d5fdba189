// The language server: what it keeps, and what it can be asked.
#pragma once

#include "Analysis.h"
#include "ppcc/Support/Subprocess.h"

namespace ppcc::lsp {

class MessageReader {
public:
  /// The next message that has come whole. Null for one that is no JSON: of the
  /// right length, so that the next may be good.
  std::optional<llvm::json::Value> take();
  /// Reads what has come; waits for it when nothing has.
  void fill();
  /// At the end of the input, and where what came is no message.
  bool isAtEnd() const { return ended; }

private:
  static constexpr size_t maxBytes = size_t(64) << 20;

  std::string bytes;
  size_t begin = 0; ///< Of what was not taken.
  bool ended = false;
};

/// A text that is open.
struct Document {
  std::string uri, path;
  TextPtr text;
  int64_t version = 0;
  std::unique_ptr<Analysis> analysis; ///< Made when it is asked for.
  /// What its last compilation gave: of which version, and values by the bytes
  /// where names are declared.
  int64_t compiledVersion = -1;
  llvm::json::Object values;
  int64_t chunks = 0;
  llvm::json::Array published;
  bool isSaved = false; ///< To be compiled as the command line does.
};

/// The part of a message that is an object; an empty one for none.
const llvm::json::Object &objectIn(const llvm::json::Object &message,
                                   StringRef key);

struct DocumentParams {
  DocumentParams(Document &document, const llvm::json::Object &)
      : document(document) {}
  Document &document;
};
struct PositionParams : DocumentParams {
  PositionParams(Document &document, const llvm::json::Object &params)
      : DocumentParams(document, params),
        offset(document.text->offset(params.getObject("position"))) {}
  size_t offset;
};
struct RenameParams : PositionParams {
  RenameParams(Document &document, const llvm::json::Object &params)
      : PositionParams(document, params),
        newName(params.getString("newName").value_or("")) {}
  std::string newName;
};
struct RangeParams : DocumentParams {
  RangeParams(Document &document, const llvm::json::Object &params)
      : DocumentParams(document, params),
        begin(document.text->offset(
            objectIn(params, "range").getObject("start"))),
        end(document.text->offset(objectIn(params, "range").getObject("end"))) {
  }
  size_t begin, end;
};

class CompletionList;

/// What semantic tokens may be, by their numbers.
inline constexpr StringRef tokenTypes[] = {
    "keyword", "comment",  "string", "number",    "operator", "function",
    "macro",   "variable", "type",   "parameter", "class",    "enumMember"};

class Server {
public:
  Server(Session::Files files, StringRef version, ReadOptions readOptions,
         raw_ostream &out)
      : disk(std::move(files)), version(version), readOptions(readOptions),
        out(out) {}

  bool run();

private:
  using Params = const llvm::json::Object &;
  using Json = llvm::json::Value;
  using OtherText = std::pair<std::string, TextPtr>; ///< With its address.

  // Server.cpp: messages, and what is wrong with texts.
  /// True for the last.
  bool handleMessage(const llvm::json::Object &message);
  std::optional<Json> handleRequest(StringRef method, Params params);
  void configure(const llvm::json::Object *settings);
  void handleNotification(StringRef method, Params params);
  void change(const std::string &uri, Params document, Params text);
  void recompileAll(Document *first = nullptr);
  void compileInBackground(Document &document);
  void finishCompile();
  void publish(Document &document, llvm::json::Array diagnostics);
  void send(llvm::json::Object message);
  /// Says something to the user that is about no text.
  void warn(StringRef message);
  /// The disk, with the texts that are open in the places of their files; `as`,
  /// if any, in the place of that of `path`.
  Session::Files filesWith(StringRef path, StringRef as) const;
  CompileSettings compileSettingsFor(StringRef path, const Text &text) const {
    return compileSettingsOf(path, text.all(), settings, readOptions);
  }
  std::unique_ptr<Analysis> analyze(StringRef path, const Text &text) const;
  const Analysis &analysis(Document &document);
  Document *find(const std::string &uri);
  /// The address of a file, as the client spells it if it has that open.
  std::string uriOf(StringRef path) const;

  // Names.cpp: what words mean.
  struct ResolvedName {
    StringRef word;         ///< In the text that is asked about; or none.
    std::string uri{};      ///< Of the text that declares it.
    TextPtr text = nullptr; ///< Null for a word of the language, or none.
    StringRef name{};       ///< Where it is declared in that.
    StringRef what{}, type{};
    bool isChecked = false; ///< The checker says so, and not the braces alone.

    /// Whether there is a declaration that may be written otherwise.
    bool canRename() const {
      return text && !StringRef(uri).starts_with(libraryScheme);
    }
    std::string comment() const;
    std::vector<StringRef> parameters() const;
  };
  ResolvedName resolveAt(const PositionParams &at);
  ResolvedName resolve(Document &document, StringRef word);
  /// The texts of the files that a text imports, and of those that they import.
  std::vector<OtherText> imports(Document &document);
  TextPtr textOfFile(StringRef path);
  /// The text of a closed file, if it can be read as a source.
  std::optional<std::string> read(StringRef path) const;
  std::optional<std::pair<std::string, StringRef>>
  importAt(const PositionParams &at);
  std::vector<OtherText> unopenedFilesWith(StringRef word);
  /// In texts, by their addresses.
  using Ranges = std::map<std::string, std::vector<llvm::json::Object>>;
  Ranges occurrencesOf(const ResolvedName &meaning, bool inWorkspace);

  // Completion.cpp: what helps to write a schedule.
  void complete(const PositionParams &at, CompletionList &items);
  void completeArgument(Document &document, const char *place, StringRef name,
                        bool isFirst, CompletionList &items);

#define REQUEST(Method, Function) Json Function(Params params);
#define DOCUMENT_REQUEST(Method, Function, Type)                               \
  Json Function(const Type##Params &params);
#include "Requests.def"

  Session::Files disk;
  StringRef version; ///< Of the server.
  ReadOptions readOptions;
  raw_ostream &out;
  std::set<std::string> folders; ///< The workspace.
  MessageReader input;
  Subprocess job;
  Document *compiling = nullptr; ///< What the job looks at.
  bool jobIsForSaved = false;
  std::map<std::string, Document> documents; ///< By their addresses.
  SmallVector<Document *, 4> dirty;          ///< To be looked at, last first.
  std::vector<std::string> settings;
  bool isShutDown = false;
};
/// The word before the innermost brace that is open there: `action`, `comm`.
StringRef blockAround(StringRef text, size_t offset);
} // namespace ppcc::lsp
