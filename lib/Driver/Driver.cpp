// The command line of ppcc.
#include "ppcc/Driver/Driver.h"

#include "Depfile.h"
#include "Families.h"
#include "Options.h"
#include "PictureOptions.h"
#include "Watch.h"
#include "ppcc/Compiler/PassRegistry.h"
#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Support/Printable.h"

using namespace ppcc;

namespace {

/// Writes what was compiled.
class Writer {
public:
  Writer(const Options &options, const Compiled &compiled, Session &session,
         raw_ostream &out, raw_ostream &err)
      : options(options), compiled(compiled), session(session), out(out),
        err(err) {}

  ExitCode write() {
    if (options.emit == "ast")
      return writeFiles(
          [&](raw_ostream &s) { print(compiled.files.back(), s); });
    std::string timeline;
    llvm::raw_string_ostream stream(timeline);
    if (options.timeline && !emitTo(stream, "timeline", err))
      return Errors;
    // A file that this writes is not a terminal.
    bool toFile = options.output != "-";
    ExitCode code = Success;
    if (!options.check)
      code = writeFiles([&](raw_ostream &s) {
        emitTo(s, options.emit, toFile ? llvm::nulls() : out);
      });
    err << timeline;
    return code;
  }

private:
  /// Lets `fill` write the output; then the dependency file, if one is wanted.
  ExitCode writeFiles(function_ref<void(raw_ostream &)> fill) {
    if (options.depfile.empty())
      return writeOutput(options.output, out, session, fill);
    return writeOutput(options.depfile, out, session, [&](raw_ostream &s) {
      if (writeDepfile(options.depfile, options.output, session.sources,
                       session.diags, s))
        writeOutput(options.output, out, session, fill);
    });
  }

  /// Writes a format that people see in the stream `shown`.
  bool emitTo(raw_ostream &to, StringRef format, const raw_ostream &shown) {
    EmitOptions emitOptions = options.emitOptions;
    emitOptions.print = options.request.passes.instrumentation.print;
    emitOptions.picture =
        fitted(emitOptions.picture, shown, options.console.color);
    return emit(compiled, *findEmitter(format), to, session, emitOptions);
  }

  const Options &options;
  const Compiled &compiled;
  Session &session;
  raw_ostream &out, &err;
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

/// Reads the files, writes the output.
static int compileOnce(const Options &given, Session::Files fs,
                       raw_ostream &out, raw_ostream &err) {
  Options options = given;
  options.request.passes.instrumentation.out = &err;
  auto session = consoleSession(std::move(fs), options.console, err);
  if (auto code = writeByFamilies(options, *session, out, err))
    return *code;
  Compiled compiled = compileAny(options, *session);
  ExitCode code = exitCodeOf(compiled, err);
  Writer writer(options, compiled, *session, out, err);
  if (code == Success && options.request.until == Request::Until::Checked)
    listParams(compiled.params, out);
  else if (code == Success &&
           (!options.check || options.timeline || options.emit == "ast"))
    code = compiled.times.measure("emit", [&] { return writer.write(); });
  if (options.request.passes.instrumentation.timePasses)
    compiled.times.print(err);
  return code;
}

/// Whenever a file changes that the last time read, or looked for.
[[noreturn]] static void compileForEver(const Options &options,
                                        Session::Files fs, raw_ostream &out,
                                        raw_ostream &err) {
  for (;;) {
    auto watched = llvm::makeIntrusiveRefCnt<WatchedFiles>(fs);
    auto start = std::chrono::steady_clock::now();
    if (err.is_displayed())
      err << "\033[H\033[2J"; // An empty screen.
    compileOnce(options, watched, out, err);
    out.flush();
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - start;
    err << fmt::format("-- {:.3f} s; again when {} changes\n", took.count(),
                       printable(watched->names()));
    err.flush();
    while (!watched->waitForChange(std::chrono::seconds(1)))
      ;
  }
}

static int compileAs(Options options, ArrayRef<const char *> args,
                     Session::Files fs, raw_ostream &out, raw_ostream &err) {
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
  if (options.watch)
    compileForEver(options, std::move(fs), out, err);
  return compileOnce(options, std::move(fs), out, err);
}

int ppcc::runBuild(ArrayRef<const char *> args, Session::Files fs,
                   raw_ostream &out, raw_ostream &err) {
  return compileAs({.command = "ppcc build"}, args, std::move(fs), out, err);
}

int ppcc::runCheck(ArrayRef<const char *> args, Session::Files fs,
                   raw_ostream &out, raw_ostream &err) {
  return compileAs({.command = "ppcc check", .check = true}, args,
                   std::move(fs), out, err);
}

int ppcc::runReport(ArrayRef<const char *> args, Session::Files fs,
                    raw_ostream &out, raw_ostream &err) {
  return compileAs({.command = "ppcc report", .emit = "report"}, args,
                   std::move(fs), out, err);
}

int ppcc::runCompiler(ArrayRef<const char *> args, Session::Files fs,
                      raw_ostream &out, raw_ostream &err) {
  StringRef word = args.size() > 1 ? args[1] : "";
#define COMMAND(name, function, summary)                                       \
  if (word == name)                                                            \
    return function(args.drop_front(), std::move(fs), out, err);
#include "Commands.def"
  return compileAs({}, args, std::move(fs), out, err);
}

CompiledCommand ppcc::compileCommand(ArrayRef<const char *> args,
                                     Session::Files fs, raw_ostream &out,
                                     raw_ostream &err) {
  CompiledCommand command{Usage, nullptr, {}};
  Options options;
  if (std::optional<int> code = parseOptions(args, options, out, err)) {
    command.code = *code == Success ? Usage : *code; // Help is no program.
    return command;
  }
  options.request.until = Request::Until::Done;
  command.session = consoleSession(std::move(fs), options.console, err);
  command.compiled = compileAny(options, *command.session);
  command.code = exitCodeOf(command.compiled, err);
  return command;
}

bool ppcc::emitJsonOf(const CompiledCommand &command, bool hasRows,
                      raw_ostream &out) {
  const Program &program = command.compiled.program;
  if (hasRows)
    return emit(command.compiled, *findEmitter("json"), out, *command.session);
  Rows none;
  for ([[maybe_unused]] RankId rank : program.ranks())
    none.beginRank();
  Compiled head;
  head.comm = command.compiled.comm;
  head.program = program.restated(std::move(none));
  return emit(head, *findEmitter("json"), out, *command.session);
}
