// The compiler as a library: a schedule or program in, a verified program and
// diagnostics out.
#pragma once

#include "ppcc/AST/AST.h"
#include "ppcc/Compiler/CommPolicy.h"
#include "ppcc/Emit/Emitter.h"
#include "ppcc/Import/Importer.h"
#include "ppcc/Model/Instance.h"
#include "ppcc/Verify/Passes.h"

#include "llvm/ADT/ScopeExit.h"

#include <chrono>

namespace ppcc {

/// The sources of compilations, and what was found wrong with them. Files come
/// from the file system of the session and from the library of schedules; no
/// process is started. Of the diagnostics of a compilation that are of one code
/// at one place of a file and differ in numbers alone, the first is handed on,
/// with a note of how many more there were.
class Session {
public:
  using Files = llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem>;
  using Consumer =
      std::function<void(const Diagnostic &, const SourceManager &)>;
  /// Without a consumer, diagnostics are collected in `found`.
  explicit Session(Files files, Consumer consumer = nullptr);
  /// One beside another, of the same files: what can be read once only, each
  /// has read for both.
  explicit Session(const SourceManager &other);
  Session(const Session &) = delete;

  /// Holds back what is found, to tell what is one mistake once; hands it on at
  /// the end of what this gives. compile(), emit() and runPasses() have one.
  [[nodiscard]] auto batchDiagnostics() {
    ++batchDepth;
    return llvm::make_scope_exit([this] {
      --batchDepth;
      flush();
    });
  }
  /// Hands on what is held.
  void flush();

  /// Opens a file, or reports that it cannot be read.
  std::optional<uint32_t> open(StringRef path);
  /// The diagnostics that were collected, as they are shown in a terminal.
  std::string text() const;

  SourceManager sources;
  std::vector<Diagnostic> found;
  DiagnosticEngine diags;
  sema::Observer *observer = nullptr; ///< Of names; may be null.

private:
  struct DiagnosticGroup {
    Diagnostic first;
    size_t more = 0;
    std::string last = {}; ///< The message of the last.
  };
  void hold(const Diagnostic &reported);

  Consumer consumer;
  unsigned batchDepth = 0;
  std::vector<DiagnosticGroup> held;
  /// In `held`, by place and message without its numbers.
  std::map<std::tuple<unsigned, uint32_t, std::string>, size_t> places;
};

/// Costs that stand above those of the program.
struct CostRequest {
  std::vector<std::string> files;    ///< Of JSON, see docs/reports.md.
  std::vector<std::string> settings; ///< `NAME=VALUE`, above those of files.
  /// Times and memory are those of a rank's share of a microbatch, however many
  /// stages the pipe has: a stage takes ranks / stages of them.
  bool perRank = false;
};

/// What is wrong with a setting, whatever the program, or nothing.
std::string checkCost(StringRef setting);
/// Puts costs into the program. False after reports.
bool applyCosts(const CostRequest &request, Session &session, Program &program);

/// Which passes run, and what is watched meanwhile.
struct PassRequest {
  std::string passes; ///< A pipeline as text.
  Instrumentation instrumentation;
  bool verifiesEach = false; ///< After each pass that changes the program.
};

/// Runs the passes on the program. False after reports.
bool runPasses(const PassRequest &request, Session &session, Program &program,
               const CommPolicy &comm = {},
               DynamicRule dynamic = DynamicRule::None);

struct Request;
struct Compiled;
/// Answers a request from what is known of all numbers of microbatches;
/// nothing, and no report, where that is no gain.
using CompileByFamily = std::optional<Compiled>(const Request &request,
                                                Session &session);

/// What to compile, and how.
struct Request {
  /// Where a compilation ends: after its files are parsed, checked, expanded
  /// into a program, or through all passes.
  enum class StopAfter : uint8_t { Parsed, Checked, Expanded, Done };

  std::string input; ///< A file, `-` for standard input, or a library's name.
  std::string from;  ///< The format of a program; empty to tell by the file.
  StopAfter until = StopAfter::Done;
  std::string schedule; ///< Which of the file's; empty when there is one.
  /// `FILE:NAME`, a file with one, or the name of one that the files of the
  /// schedule declare, or of the library. Empty for those of the schedule.
  std::string model, cluster;
  std::vector<sema::ParamValue> params;
  bool ignoresUnknownParams = false; ///< Some may be for other schedules.
  std::vector<std::string> rules;    ///< To follow, as after `with`.
  std::string ruleFile = "std.pp";
  std::string layout; ///< Stands for that of the schedule; empty for none.
  CommRequest comm;
  TorchTarget torch;   ///< Whose steps a sweep has, when it is for FSDP.
  PassRequest passes;  ///< Their text, if any, stands for what `comm` leads to.
  bool rolled = false; ///< Write loops for what repeats itself.
  const Rows *rows = nullptr; ///< What ranks of a schedule do, in place of
                              ///< their bodies.
  CompileByFamily *byFamily = nullptr; ///< Is tried first, if it is given.
  CostRequest costs;
  bool checksMemory = true; ///< Refuse programs above the limits of ranks.
  DynamicRule dynamic = DynamicRule::None; ///< Of a runtime to verify it for.
  std::optional<uint32_t> microbatches; ///< Of a program that does not say it.
  sema::Limits limits;
  std::optional<size_t> maxSourceBytes;
};

/// How long each phase took.
class PhaseTimes {
public:
  template <class Fn> auto measure(StringRef phase, Fn run) {
    auto start = std::chrono::steady_clock::now();
    auto result = run();
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - start;
    rows.push_back({phase, took.count()});
    return result;
  }
  void print(raw_ostream &out) const;

  std::vector<std::pair<StringRef, double>> rows; ///< In seconds.
};

/// A parameter of a schedule.
struct ParameterText {
  std::string name, type;
  std::string range, defaultValue; ///< Empty when there is none.
};

/// A schedule whose names and types are right, with what it is compiled with.
struct Checked {
  sema::Module module;
  sema::Selection selection; ///< Of the module.
  sema::LayoutOverride layout;
};

/// What became of a request.
struct Compiled {
  bool isGood = false;
  std::string
      usageError; ///< Which part of the request is not for such an input.
  /// The tree of the input, and what owns it; empty for a program.
  std::unique_ptr<ast::Context> context;
  std::vector<ast::File> files;
  std::vector<ParameterText> params;
  std::shared_ptr<const Checked> checked; ///< Of a request that ends there.
  CommPolicy comm;
  Program program; ///< Empty before it was expanded.
  PhaseTimes times;

  explicit operator bool() const { return isGood; }
};

/// A file, and the format of the program that it holds; null for a schedule.
struct InputFile {
  uint32_t source;
  const Importer *format;
};
/// The two parts of `FILE:NAME`; without a name, the text is a file.
std::pair<StringRef, StringRef> splitName(StringRef text);
/// Opens the input of a request, or reports that it cannot be read.
std::optional<InputFile> openInput(const Request &request, Session &session);

/// Compiles; by the family, where nobody observes the values of names. Errors
/// are reported to the session.
Compiled compile(const Request &request, Session &session);

/// Writes the program in one of the formats of emitters(), for the first of its
/// transports. False after reports.
bool emit(const Compiled &compiled, const Emitter &format, raw_ostream &out,
          Session &session, EmitOptions options = {});

} // namespace ppcc
