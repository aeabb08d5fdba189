// Diagnostics and colours of the command lines.
#include "Console.h"

#include "ppcc/Basic/DiagnosticsJson.h"

#include "llvm/Support/Process.h"

using namespace ppcc;

bool ppcc::wantsColor(StringRef when, const raw_ostream &stream) {
  return when == "always" || (when == "auto" && stream.has_colors() &&
                              !llvm::sys::Process::GetEnv("NO_COLOR"));
}

std::unique_ptr<Session>
ppcc::consoleSession(Session::Files files, const ConsoleOptions &options,
                     raw_ostream &err,
                     std::function<void(Diagnostic &)> adapt) {
  bool color = wantsColor(options.color, err);
  err.enable_colors(color);
  auto session = std::make_unique<Session>(
      std::move(files), [=, &err, asJson = options.asJson](
                            Diagnostic found, const SourceManager &sources) {
        if (adapt)
          adapt(found);
        if (asJson)
          renderJson(found, sources, err);
        else
          render(found, sources, err, {color});
      });
  session->diags.maxErrors = options.maxErrors;
  return session;
}

ExitCode ppcc::exitCodeOf(const Compiled &compiled, raw_ostream &err) {
  if (compiled.status == Compiled::Status::Misused) {
    err << "ppcc: error: " << compiled.misuse
        << "\nnote: `ppcc --help` lists the options\n";
    return Usage;
  }
  return compiled ? Success : Errors;
}
