// The command line of ppcc.
#include "ppcc/Driver/Driver.h"

#include "Depfile.h"
#include "Families.h"
#include "Options.h"
#include "Watch.h"
#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Compiler/CommPolicy.h"
#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Emit/Writer.h"
#include "ppcc/Support/Printable.h"

using namespace ppcc;

namespace {

/// Writes what was compiled.
struct ResultWriter {
  const BuildOptions &options;
  const Compiled &compiled;
  Session &session;
  const Invocation &call;

  ExitCode write() {
    if (options.emit == "ast")
      return writeFiles(
          [&](raw_ostream &s) { print(compiled.files.back(), s); });
    std::string timeline;
    llvm::raw_string_ostream stream(timeline);
    if (options.timeline && !emitTo(stream, "timeline", call.err))
      return Errors;
    // A file that this writes is not a terminal.
    bool toFile = options.output != "-";
    ExitCode code = Success;
    if (!options.check)
      code = writeFiles([&](raw_ostream &s) {
        emitTo(s, options.emit, toFile ? llvm::nulls() : call.out);
      });
    call.err << timeline;
    return code;
  }

private:
  /// Lets `fill` write the output; also the dependency file, if one is wanted.
  ExitCode writeFiles(function_ref<void(raw_ostream &)> fill) {
    auto depend = [&](raw_ostream &s) {
      writeDepfile(options.depfile, options.output, session.sources,
                   session.diags, s);
    };
    OutputFile files[] = {{options.output, fill}, {options.depfile, depend}};
    return writeOutputs(ArrayRef(files).drop_back(options.depfile.empty()),
                        call.out, session);
  }

  /// Writes a format that people see in the stream `shown`.
  bool emitTo(raw_ostream &to, StringRef format, const raw_ostream &shown) {
    EmitOptions emitOptions = options.emitOptions;
    emitOptions.print = options.request.passes.instrumentation.print;
    emitOptions.picture =
        fitted(emitOptions.picture, shown, options.console.color);
    return emit(compiled, *findEmitter(format), to, session, emitOptions);
  }
};

} // namespace

static void listSchedules(raw_ostream &out) {
  for (const LibraryFile &file : scheduleLibrary())
    if (file.text.contains("\nschedule "))
      out << fmt::format("{:26}{}\n", file.names().front(), file.summary());
}

/// Sentences of the table, with what Markdown would take for its own kept
/// apart.
static void listDiagnostics(raw_ostream &out) {
  auto escaped = [](StringRef text) {
    return llvm::join(llvm::split(text, '|'), "\\|");
  };
  out << "| code | name | message | what to do |\n|---|---|---|---|\n";
  for (const DiagInfo &info : diagTable())
    out << "| " << info.code << " | " << info.name << " | "
        << escaped(info.text) << " | " << escaped(info.hint) << " |\n";
}

static void listParams(ArrayRef<ParameterText> params, raw_ostream &out) {
  for (const ParameterText &param : params)
    out << param.name << ": " << param.type << (param.range.empty() ? "" : " ")
        << param.range << (param.defaultValue.empty() ? "" : " = ")
        << param.defaultValue << '\n';
}

/// What `ppcc check` says of a good program.
static void printVerdict(const Program &program, const BuildOptions &options,
                         raw_ostream &out) {
  DynamicRule dynamic = options.request.dynamic;
  if (options.asJson) {
    Writer writer(out);
    writer.object(
        [&](JsonFields &fields) {
          fields("format", "ppcc.check");
          fields("version", 1);
          fields("schedule", program.name());
          fields.object("params", [&](JsonFields &of) {
            putParams(of, program.params());
          });
          fields("ranks", program.numRanks());
          fields.values("transports", program.provenUnder());
          if (!options.request.passes.passes.empty())
            fields("passes", options.request.passes.passes);
          if (auto *rule =
                  findBy(dynamicRules, dynamic, &DynamicRuleName::second))
            fields("dynamic", rule->first);
        },
        indentedJson);
    writer.put('\n');
    return;
  }
  if (const std::string &passes = options.request.passes.passes;
      !passes.empty()) {
    out << fmt::format("{}: `{}` found no error; nothing else was verified\n",
                       printable(program.name()), printable(passes));
    return;
  }
  bool isProven = !program.provenUnder().empty();
  StringRef whereDynamic =
      dynamic == DynamicRule::None ? ""
      : dynamic == DynamicRule::Hint
          ? ", and where ranks run ahead while the rest of their order fits"
      : program.costs().has({Cost::MemoryLimit})
          ? ", and where ranks start whatever is ready and fits"
          : ", and where ranks start whatever is ready, without memory limits";
  out << fmt::format(
      "{}: valid on {} rank{}; {}{}\n", printable(program.name()),
      program.numRanks(), program.numRanks() == 1 ? "" : "s",
      isProven ? "deadlock-free on " + llvm::join(program.provenUnder(), ", ")
               : "without messages",
      whereDynamic);
}

/// Reads the files, writes the output.
static int compileOnce(BuildOptions options, const Invocation &call) {
  options.request.passes.instrumentation.out = &call.err;
  auto session = consoleSession(call, options.console);
  if (!prepareOutputs({options.output, options.depfile}, call.out, *session))
    return Errors;
  if (!options.free.empty())
    return writeForAll(options, *session, call);
  Compiled compiled = compile(options.request, *session);
  ExitCode code = exitCodeOf(compiled, call.err);
  if (code == Success && options.synthesizes)
    if (auto *timed =
            Analyses(compiled.program)
                .timedRun(compiled.comm.transports.front(), session->diags))
      options.emitOptions.synthesized =
          synthesizeFor(options.request, compiled.program,
                        reportOf(compiled.program, *timed), *session);
  ResultWriter writer{options, compiled, *session, call};
  if (code == Success && options.request.until == Request::StopAfter::Checked)
    listParams(compiled.params, call.out);
  else if (code == Success && (!options.check || options.timeline))
    code = compiled.times.measure("emit", [&] { return writer.write(); });
  if (code == Success && options.command == "ppcc check")
    printVerdict(compiled.program, options, call.out);
  if (options.request.passes.instrumentation.timePasses)
    compiled.times.print(call.err);
  return code;
}

/// Whenever a file changes that the last time read, or looked for.
[[noreturn]] static void watchAndRecompile(const BuildOptions &options,
                                           const Invocation &call) {
  for (;;) {
    auto watched = llvm::makeIntrusiveRefCnt<WatchedFiles>(call.files);
    auto start = std::chrono::steady_clock::now();
    if (call.err.is_displayed())
      call.err << "\033[H\033[2J";                // An empty screen.
    (void)watched->status(options.request.input); // Whatever is wrong.
    compileOnce(options, {call.args, watched, call.out, call.err});
    call.out.flush();
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - start;
    call.err << fmt::format("-- {:.3f} s; again when {} changes\n",
                            took.count(), printable(watched->names()));
    call.err.flush();
    watched->waitForChange();
  }
}

static int compileAs(StringRef name, Declare *declare, const Invocation &call) {
  BuildOptions options;
  options.command = name.str();
  if (std::optional<int> code = parseOptions(call, options, declare))
    return *code;
  if (options.listSchedules)
    listSchedules(call.out);
  if (options.listPasses)
    makePassRegistry().list(call.out);
  if (options.listDiagnostics)
    listDiagnostics(call.out);
  if (options.lists())
    return Success;
  if (options.watch)
    watchAndRecompile(options, call);
  if (options.inputs.empty())
    return compileOnce(std::move(options), call);
  int code = Success;
  for (const std::string &input : options.inputs) {
    takeInput(options.request, input);
    code = std::max(code, compileOnce(options, call));
  }
  return code;
}

int ppcc::runBuild(const Invocation &call) {
  return compileAs("ppcc build", declareBuild, call);
}

int ppcc::runCheck(const Invocation &call) {
  return compileAs("ppcc check", declareCheck, call);
}

int ppcc::runReport(const Invocation &call) {
  return compileAs("ppcc report", declareReport, call);
}

int ppcc::runCompiler(const Invocation &call) {
  StringRef word = call.args.size() > 1 ? call.args[1] : "";
  if (auto *command = findBy(commands(), word, &Command::name))
    return command->run(
        {call.args.drop_front(), call.files, call.out, call.err});
  return compileAs("ppcc", declareBuild, call);
}

CompiledCommand ppcc::compileCommand(const Invocation &call) {
  CompiledCommand command{Usage, nullptr, {}};
  BuildOptions options;
  if (std::optional<int> code = parseOptions(call, options)) {
    command.code = *code == Success ? Usage : *code; // Help is no program.
    return command;
  }
  options.request.until = Request::StopAfter::Done;
  command.session = consoleSession(call, options.console);
  command.compiled = compile(options.request, *command.session);
  command.code = exitCodeOf(command.compiled, call.err);
  return command;
}

bool ppcc::emitJsonOf(const CompiledCommand &command, bool hasRows,
                      raw_ostream &out) {
  const Program &program = command.compiled.program;
  const Emitter &json = *findEmitter("json");
  if (hasRows)
    return emit(command.compiled, json, out, *command.session);
  Rows none;
  for ([[maybe_unused]] RankId rank : program.ranks())
    none.beginRank();
  Compiled head;
  head.comm = command.compiled.comm;
  head.program = program.withEquivalentRows(std::move(none));
  return emit(head, json, out, *command.session);
}
