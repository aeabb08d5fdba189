// Leads a schedule through the phases.
#include "ppcc/Driver/Driver.h"

#include "Compile.h"
#include "Depfile.h"
#include "Loader.h"
#include "Options.h"
#include "PictureOptions.h"
#include "ProgramInput.h"
#include "ppcc/Basic/DiagnosticsJson.h"
#include "ppcc/Driver/CommWords.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Driver/PassRegistry.h"
#include "ppcc/Driver/ScheduleLibrary.h"
#include "ppcc/Expand/Expand.h"
#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Transport.h"
#include "ppcc/Parse/Parser.h"
#include "ppcc/Transforms/FuseComm.h"
#include "ppcc/Transforms/InjectComm.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

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
              DiagnosticEngine &diags, raw_ostream &out, raw_ostream &err,
              TakeProgram take = nullptr)
      : options(options), sources(sources), diags(diags), out(out), err(err),
        take(take) {}

  ExitCode run() {
    ExitCode code = compile();
    if (options.instrumentation.timePasses)
      times.print(err);
    return code;
  }

private:
  ExitCode compile() {
    Loader loader(sources, context, diags);
    sources.maxBytes = options.maxSourceBytes.value_or(sources.maxBytes);
    auto source =
        loader.open(options.input, [&](StringRef name, StringRef begin) {
          return maxInputBytes(options, name, begin);
        });
    if (!source)
      return Errors;
    StringRef name = sources.name(*source), text = sources.text(*source);
    const Importer *format = programFormat(options, name, text);
    if (StringRef wrong = misusedOption(options, format != nullptr);
        !wrong.empty()) {
      err << "ppcc: error: " << wrong
          << "\nnote: `ppcc --help` lists the options\n";
      return Usage;
    }
    bool good = format ? compileProgram(*source, *format)
                       : compileSchedule(loader, *source);
    return good ? Success : Errors;
  }

  /// Verifies what somebody else wrote; adds messages when it has none.
  bool compileProgram(uint32_t source, const Importer &format) {
    ImportContext importContext{source, sources, diags, options.importOptions};
    importContext.options.maxActions = options.limits.maxActions;
    auto program = times.measure(
        "import", [&] { return importProgram(format, importContext); });
    if (!program)
      return false;
    if (options.preconnect == "off")
      program->setFacts({program->provenUnder(), {}});
    return finish(nullptr, *program);
  }

  bool compileSchedule(Loader &loader, uint32_t source) {
    auto files = times.measure("parse", [&] {
      if (!options.rules.empty())
        loader.loadBefore(ruleApplications());
      return loader.load(source);
    });
    if (!files)
      return false;
    if (options.emit == "ast")
      return write([&](raw_ostream &s) {
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
    return program && finish(schedule, *program);
  }

  /// Runs the passes over a program, of `schedule` if it comes from one, and
  /// writes it.
  bool finish(const sema::Schedule *schedule, Program &program) {
    if (!applyCosts(options.costs, sources, diags, program) ||
        !times.measure("passes", [&] { return transform(schedule, program); }))
      return false;
    if (take)
      return take(program, *findTransport(transports(schedule).front()));
    return (options.check && !options.timeline) ||
           times.measure("emit", [&] { return emit(schedule, program); });
  }

  /// The rules of the command line, as a file that follows them.
  uint32_t ruleApplications() {
    std::string text; // A rule a line, as on the command line.
    for (const std::string &rule : options.rules)
      text += "with " + rule + ";\n";
    text += "import \"" + options.ruleFile + "\";\n";
    return sources.add("--with",
                       llvm::MemoryBuffer::getMemBufferCopy(text, "--with"));
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
    std::optional<std::vector<std::string>> layout;
    if (!options.layout.empty() && !(layout = givenLayout()))
      return std::nullopt;
    sema::Evaluator evaluator(module, diags, options.limits.maxSteps());
    auto instance = sema::instantiate(schedule, params(schedule),
                                      layout ? &*layout : nullptr,
                                      options.limits, evaluator, diags);
    if (!instance)
      return std::nullopt;
    return expand(module, std::move(*instance), options.limits, evaluator,
                  sources, diags);
  }

  /// The value of --layout.
  std::optional<std::vector<std::string>> givenLayout() {
    constexpr StringRef name = "--layout";
    auto known = sources.lookup(name);
    uint32_t file = known ? *known
                          : sources.add(name, llvm::MemoryBuffer::getMemBuffer(
                                                  options.layout, name));
    return parseLayout(options.layout, sources.loc(file, 0), diags);
  }

  /// The values for the parameters of a schedule.
  std::vector<sema::ParamValue> params(const sema::Schedule &schedule) const {
    std::vector<sema::ParamValue> values = options.params;
    if (options.sharesParams)
      llvm::erase_if(values, [&](const sema::ParamValue &value) {
        return llvm::none_of(schedule.params,
                             [&](const sema::ScheduleParam &param) {
                               return param.decl->name.text == value.name;
                             });
      });
    return values;
  }

  /// The pipeline, and the check of the memory when that has a limit.
  std::string pipeline(const sema::Schedule *schedule, const Program &program) {
    std::string text = pipelineText(schedule, program);
    if (options.passes.empty() && program.costs().has({Cost::MemoryLimit}))
      text += ",verify-memory{transport=" + transports(schedule).front() + "}";
    if (wantsLoops())
      text += ",roll";
    return text;
  }

  bool wantsLoops() const {
    const Emitter *emitter = findEmitter(options.emit);
    return options.rolled || (options.passes.empty() && emitter &&
                              emitter->programs == Emitter::Rolled);
  }

  /// The passes asked for; else those that the order of communication calls
  /// for: the command line's, the schedule's, or `ready-time`. Messages that a
  /// program has stay where they are.
  std::string pipelineText(const sema::Schedule *schedule,
                           const Program &program) {
    if (!options.passes.empty())
      return options.passes;
    const FusionInfo &fusion = fusionOf(schedule);
    std::string onTransports =
        "transport=" + llvm::join(transports(schedule), "+") + "}";
    std::string proof = "verify-matching,verify-transport{" + onTransports;
    std::string bound = prefetch(schedule);
    if (!bound.empty())
      proof += ",verify-buffers{" + bound + "}";
    if (wantsPreconnect(schedule, program))
      proof += ",preconnect";
    if (fusion.places)
      return fmt::format("verify,fuse-comm{{mode={},calls={}}},verify,{}",
                         fusion.name, callsOf(schedule), proof);
    bool hasMessages = program.firstMessage().has_value();
    std::string order = hasMessages ? "none" : "ready-time";
    if (options.commOrder)
      order = *options.commOrder;
    else if (auto values = commSetting(schedule, "order"); !values.empty())
      order = values.front().text.str();
    if (order == "none" && options.transports.empty() && !hasMessages)
      return "verify";
    std::string text = "verify,";
    if (order != "none")
      text += "inject-comm{order=" + order +
              (bound.empty() ? "" : "," + bound) + torchTurns() + "},verify,";
    if (fusion.fusion != Fusion::None)
      text += fmt::format("fuse-comm{{mode={},{},verify,", fusion.name,
                          onTransports);
    return text + proof;
  }

  /// `,torch-fsdp=2.10`, or nothing when the program is not for FSDP.
  std::string torchTurns() const {
    const TorchTarget &torch = options.emitOptions.torch;
    return torch.fsdp ? fmt::format(",torch-fsdp={}.{}", torch.version.major,
                                    torch.version.minor)
                      : "";
  }

  /// `prefetch=N`, or nothing without a bound.
  std::string prefetch(const sema::Schedule *schedule) const {
    if (options.prefetch)
      return "prefetch=" + std::to_string(*options.prefetch);
    auto values = commSetting(schedule, "prefetch");
    return values.empty() ? "" : "prefetch=" + values.front().text.str();
  }

  /// Whether to list the connections: `auto` does where they may be made as
  /// messages come, on streams, and keeps the list that a program has.
  bool wantsPreconnect(const sema::Schedule *schedule,
                       const Program &program) const {
    std::string when = "auto";
    if (options.preconnect)
      when = *options.preconnect;
    else if (auto values = commSetting(schedule, "preconnect"); !values.empty())
      when = values.front().text.str();
    if (when == "auto")
      return program.preconnect().empty() &&
             llvm::any_of(transports(schedule), [](const std::string &name) {
               return findTransport(name)->hasStreams();
             });
    return when == "on";
  }

  /// The fusion asked for: the command line's, the schedule's, or `none`. An
  /// order on the command line stands above a fusion of the schedule that would
  /// place the messages itself.
  const FusionInfo &fusionOf(const sema::Schedule *schedule) const {
    const FusionInfo &none = *findFusion("none");
    if (options.fusion)
      return *findFusion(*options.fusion);
    auto values = commSetting(schedule, "fuse");
    if (values.empty())
      return none;
    const FusionInfo &fusion = *findFusion(values.front().text);
    return fusion.places && options.commOrder ? none : fusion;
  }

  static StringRef callsOf(const sema::Schedule *schedule) {
    auto values = commSetting(schedule, "calls");
    return values.empty() ? "exchange" : values.front().text;
  }

  /// Reports a schedule that says twice who places its messages.
  bool checkFusion(const sema::Schedule *schedule) {
    auto fuse = commSetting(schedule, "fuse"),
         order = commSetting(schedule, "order");
    if (fuse.empty() || order.empty() || !findFusion(fuse.front().text)->places)
      return true;
    diags.report<diag::FusionWithOrder>(fuse.front().range, fuse.front().text)
        .note(order.front().range, "the order is here");
    return false;
  }

  static llvm::ArrayRef<ast::Identifier>
  commSetting(const sema::Schedule *schedule, StringRef name) {
    if (!schedule)
      return {};
    return sema::commSetting(*schedule, name);
  }

  /// Those to be safe under: the command line's, the schedule's, or `stream`.
  std::vector<std::string> transports(const sema::Schedule *schedule) const {
    std::vector<std::string> names = options.transports;
    if (names.empty())
      for (const ast::Identifier &value : commSetting(schedule, "transport"))
        names.push_back(value.text.str());
    return names.empty() ? std::vector<std::string>{"stream"} : names;
  }

  bool transform(const sema::Schedule *schedule, Program &program) {
    return checkFusion(schedule) &&
           runPasses(pipeline(schedule, program), options, program, sources,
                     diags, err);
  }

  bool emit(const sema::Schedule *schedule, const Program &program) {
    EmitContext emitContext{diags, sources, options.emitOptions};
    emitContext.options.print = options.instrumentation.print;
    emitContext.options.transport =
        *findTransport(transports(schedule).front());
    std::string timeline;
    if (options.timeline && !drawTimeline(program, emitContext, timeline))
      return false;
    // A file that this writes is not a terminal.
    bool toFile = options.output != "-";
    emitContext.options.picture =
        fitted(options.emitOptions.picture, toFile ? llvm::nulls() : out,
               options.color);
    bool written = options.check || write([&](raw_ostream &s) {
                     return emitProgram(*findEmitter(options.emit), program, s,
                                        emitContext);
                   });
    err << timeline;
    return written;
  }

  /// Lets `fill` write the output; then the dependency file, if one is wanted.
  bool write(llvm::function_ref<bool(raw_ostream &)> fill) {
    auto writeMain = [&] {
      return writeOutput(options.output, out, sources, diags, fill);
    };
    if (options.depfile.empty())
      return writeMain();
    auto writeBoth = [&](raw_ostream &s) {
      return writeDepfile(options.depfile, options.output, sources, diags, s) &&
             writeMain();
    };
    return writeOutput(options.depfile, out, sources, diags, writeBoth);
  }

  bool drawTimeline(const Program &program, EmitContext &emitContext,
                    std::string &text) const {
    emitContext.options.picture =
        fitted(options.emitOptions.picture, err, options.color);
    llvm::raw_string_ostream stream(text);
    return emitProgram(*findEmitter("timeline"), program, stream, emitContext);
  }

  const Options &options;
  SourceManager &sources;
  DiagnosticEngine &diags;
  raw_ostream &out, &err;
  TakeProgram take;
  ast::Context context;
  PhaseTimes times;
};

} // namespace

ExitCode ppcc::compile(const Options &options, SourceManager &sources,
                       DiagnosticEngine &diags, raw_ostream &err,
                       TakeProgram take) {
  llvm::raw_null_ostream out;
  return Compilation(options, sources, diags, out, err, take).run();
}

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
    if (file.text.contains("\nschedule "))
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
  if (args.size() > 1 && StringRef(args[1]) == "compare")
    return runCompare(args.drop_front(), std::move(fs), out, err);
  if (args.size() > 1 && StringRef(args[1]) == "diff")
    return runDiff(args.drop_front(), std::move(fs), out, err);
  Options options;
  if (std::optional<int> code = parseOptions(args, options, out, err))
    return *code;
  if (options.listSchedules)
    listSchedules(out);
  if (options.listPasses)
    makePassRegistry().list(out);
  if (options.listDiagnostics)
    listDiagnostics(out);
  if (options.listSchedules || options.listPasses || options.listDiagnostics)
    return Success;

  SourceManager sources(std::move(fs));
  bool color = wantsColor(options.color, err);
  err.enable_colors(color);
  DiagnosticEngine diags([&](const Diagnostic &found) {
    if (options.jsonDiagnostics)
      renderJson(found, sources, err);
    else
      render(found, sources, err, {color});
  });
  diags.maxErrors = options.maxErrors;
  return Compilation(options, sources, diags, out, err).run();
}
