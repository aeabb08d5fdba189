// Leads a schedule through the phases.
#include "ppcc/Driver/Driver.h"

#include "Loader.h"
#include "Options.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Driver/PassRegistry.h"
#include "ppcc/Driver/ScheduleLibrary.h"
#include "ppcc/Expand/Expand.h"
#include "ppcc/Pass/PipelineParser.h"
#include "ppcc/Transforms/InjectComm.h"

#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

#include <chrono>

using namespace ppcc;
using llvm::raw_ostream;
using llvm::StringRef;

namespace {

/// The wall time of each phase.
class PhaseTimes {
public:
  template <class Fn> auto measure(StringRef phase, Fn run) {
    auto start = std::chrono::steady_clock::now();
    auto result = run();
    rows.push_back({phase, std::chrono::duration<double>(
                               std::chrono::steady_clock::now() - start)
                               .count()});
    return result;
  }

  void print(raw_ostream &out) const {
    out << "  seconds  phase\n";
    for (const auto &[phase, seconds] : rows)
      out << fmt::format("{:9.4f}  {}\n", seconds, phase);
  }

private:
  std::vector<std::pair<StringRef, double>> rows;
};

class Compilation {
public:
  Compilation(const Options &options, SourceManager &sources,
              DiagnosticEngine &diags, raw_ostream &out, raw_ostream &err)
      : options(options), sources(sources), diags(diags), out(out), err(err) {}

  bool run() {
    bool ok = compile();
    if (options.instrumentation.timePasses)
      times.print(err);
    return ok;
  }

private:
  bool compile() {
    auto files = times.measure("parse", [&] {
      return Loader(sources, context, diags).load(options.input);
    });
    if (!files)
      return false;
    if (options.emit == "ast")
      return writeOutput(options.output, out, diags, [&](raw_ostream &s) {
        print(files->back(), s);
        return true;
      });
    auto module = times.measure("check", [&] {
      return sema::check(*files, context, commWords(), diags);
    });
    if (!module)
      return false;
    StringRef fileName = sources.name(files->back().source);
    const sema::Schedule *schedule =
        sema::selectSchedule(*module, options.schedule, fileName, diags);
    if (!schedule)
      return false;
    if (options.listParams) {
      listParams(*schedule);
      return true;
    }
    auto program =
        times.measure("expand", [&] { return layOut(*module, *schedule); });
    if (!program)
      return false;
    return times.measure("passes",
                         [&] { return transform(*schedule, *program); }) &&
           (options.check ||
            times.measure("emit", [&] { return emit(*program); }));
  }

  /// What `comm { }` may name.
  static sema::CommWords commWords() {
    sema::CommWords words;
    for (const CommOrderInfo &order : commOrders())
      words.orders.push_back(order.name);
    words.transports = {"buffered", "rendezvous", "stream", "stream-per-peer",
                        "stream-per-edge"};
    words.fusions = {"none"};
    return words;
  }

  void listParams(const sema::Schedule &schedule) {
    for (const sema::ScheduleParam &param : schedule.params) {
      out << param.decl->name.text << ": " << typeName(param.type);
      if (param.decl->defaultValue)
        print(param.decl->defaultValue, out << " = ");
      out << '\n';
    }
  }

  std::optional<Program> layOut(const sema::Module &module,
                                const sema::Schedule &schedule) {
    sema::Evaluator evaluator(module, diags, options.limits.maxSteps());
    auto instance = sema::instantiate(schedule, options.params, options.limits,
                                      evaluator, diags);
    if (!instance)
      return std::nullopt;
    return expand(module, std::move(*instance), options.limits, evaluator,
                  sources, diags);
  }

  /// The passes asked for; else those that the order of communication calls
  /// for: the command line's, the schedule's, or `sweep`.
  std::string pipelineText(const sema::Schedule &schedule) {
    if (!options.passes.empty())
      return options.passes;
    std::string order = "sweep";
    if (options.commOrder)
      order = *options.commOrder;
    else if (auto values = sema::commSetting(schedule, "order");
             !values.empty())
      order = values.front().text.str();
    return order == "none" ? "verify"
                           : "verify,inject-comm{order=" + order + "},verify";
  }

  bool transform(const sema::Schedule &schedule, Program &program) {
    PassRegistry registry = makePassRegistry();
    auto pipeline =
        parsePipeline(pipelineText(schedule), registry, sources, diags);
    if (!pipeline)
      return false;
    Pipeline verifier;
    Instrumentation instrumentation = options.instrumentation;
    instrumentation.out = &err;
    if (options.verifyEach) {
      verifier = *parsePipeline("verify", registry, sources, diags);
      instrumentation.verifyEach = &verifier;
    }
    PassContext passContext(sources, diags);
    return runPipeline(*pipeline, program, passContext, instrumentation);
  }

  bool emit(const Program &program) {
    const Emitter &emitter = *findEmitter(options.emit);
    EmitContext emitContext{diags, sources, options.emitOptions};
    emitContext.options.print = options.instrumentation.print;
    return writeOutput(options.output, out, diags, [&](raw_ostream &s) {
      return emitter.emit(program, s, emitContext);
    });
  }

  const Options &options;
  SourceManager &sources;
  DiagnosticEngine &diags;
  raw_ostream &out, &err;
  ast::Context context;
  PhaseTimes times;
};

} // namespace

/// The first sentence of the comment at the top of a file.
static std::string firstComment(StringRef text) {
  std::string comment;
  while (text.consume_front("//")) {
    auto [line, rest] = text.split('\n');
    comment += (comment.empty() ? "" : " ") + line.trim().str();
    text = rest;
  }
  return comment;
}

static void listSchedules(raw_ostream &out) {
  for (const LibraryFile &file : scheduleLibrary())
    out << fmt::format("{:26}{}\n", llvm::sys::path::stem(file.name),
                       firstComment(file.text));
}

/// Sentences of the table, with what Markdown would take for its own kept
/// apart.
static void listDiagnostics(raw_ostream &out) {
  auto escaped = [](StringRef text) {
    std::string result;
    for (char c : text)
      result += c == '|' ? "\\|" : std::string(1, c);
    return result;
  };
  out << "| code | name | message | what to do |\n|---|---|---|---|\n";
  for (const DiagInfo &info : diagTable())
    out << "| " << info.code << " | " << info.name << " | "
        << escaped(info.text) << " | " << escaped(info.hint) << " |\n";
}

int ppcc::runCompiler(llvm::ArrayRef<const char *> args,
                      llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> fs,
                      raw_ostream &out, raw_ostream &err) {
  Options options;
  if (std::optional<int> code = parseOptions(args, options, out, err))
    return *code;
  if (options.listSchedules)
    listSchedules(out);
  if (options.listPasses)
    makePassRegistry().list(out);
  if (options.listDiagnostics)
    listDiagnostics(out);
  if (options.input.empty())
    return Success;

  SourceManager sources(std::move(fs));
  sources.maxBytes = options.maxSourceBytes;
  bool color = options.color == "always" ||
               (options.color == "auto" && err.has_colors() &&
                !llvm::sys::Process::GetEnv("NO_COLOR"));
  err.enable_colors(color);
  DiagnosticEngine diags(
      [&](const Diagnostic &found) { render(found, sources, err, {color}); });
  diags.maxErrors = options.maxErrors;
  return Compilation(options, sources, diags, out, err).run() ? Success
                                                              : Errors;
}
