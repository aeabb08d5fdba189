// What command lines show people, and on which terminal.
#include "Console.h"

#include "ppcc/Basic/Diagnostics.h"

#include "llvm/Support/Process.h"

#include <sys/ioctl.h>
#include <unistd.h>

using namespace ppcc;

bool ppcc::wantsColor(StringRef when, const raw_ostream &stream) {
  return when == "always" || (when == "auto" && stream.has_colors() &&
                              !llvm::sys::Process::GetEnv("NO_COLOR"));
}

std::unique_ptr<Session>
ppcc::consoleSession(const Invocation &call, const ConsoleOptions &options,
                     std::function<void(Diagnostic &)> adapt) {
  raw_ostream &err = call.err;
  bool color = wantsColor(options.color, err);
  err.enable_colors(color);
  auto session = std::make_unique<Session>(
      call.files, [=, &err, asJson = options.asJson](
                      Diagnostic found, const SourceManager &sources) {
        if (adapt)
          adapt(found);
        if (asJson)
          renderJson(found, sources, err);
        else
          render(found, sources, err, color);
      });
  session->diags.maxErrors = options.maxErrors;
  return session;
}

ExitCode ppcc::exitCodeOf(const Compiled &compiled, raw_ostream &err) {
  if (!compiled.usageError.empty()) {
    err << "ppcc: error: " << compiled.usageError
        << "\nnote: `ppcc --help` lists the options\n";
    return Usage;
  }
  return compiled ? Success : Errors;
}

/// The columns of the terminal after `stream`; 0 when there is none.
static uint32_t terminalColumns(const raw_ostream &stream) {
  winsize size;
  int file = &stream == &llvm::outs()   ? STDOUT_FILENO
             : &stream == &llvm::errs() ? STDERR_FILENO
                                        : -1;
  if (file < 0 || !stream.is_displayed() || ioctl(file, TIOCGWINSZ, &size) != 0)
    return 0;
  return size.ws_col;
}

/// Whether the environment asks for UTF-8, by the first of its variables that
/// is set.
static bool localeIsUtf8() {
  for (const char *name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (auto value = llvm::sys::Process::GetEnv(name); value && !value->empty())
      return StringRef(*value).contains_insensitive("utf-8") ||
             StringRef(*value).contains_insensitive("utf8");
  return false;
}

PictureOptions ppcc::fitted(PictureOptions options, const raw_ostream &stream,
                            StringRef color) {
  options.color = wantsColor(color, stream);
  options.unicode = localeIsUtf8();
  if (options.width == 0)
    options.width = terminalColumns(stream);
  return options;
}
