// `ppcc fmt`: schedules in one style.
#include "Options.h"
#include "ppcc/Basic/Diagnostics/Files.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Editor/Format.h"

#include "llvm/Support/JSON.h"

using namespace ppcc;

int ppcc::runFmt(ArrayRef<const char *> args, Session::Files fs,
                 raw_ostream &out, raw_ostream &err) {
  std::vector<std::string> inputs;
  bool check = false;
  ConsoleOptions console;
  OptionParser parser("ppcc fmt",
                      "Writes schedules in one style; comments, the ends of "
                      "lines, and columns that stand below each other stay");
  parser.positional("FILE", inputs,
                    "Files, each of which is written anew, or `-`: from "
                    "standard input to standard output");
  parser.flag("--check", check,
              "Write nothing; the exit status is 1 when a file would change");
  addMaxErrors(parser, console.maxErrors);
  if (std::optional<int> code = parser.parse(args, out, err))
    return *code;

  auto session = consoleSession(fs, console, err);
  DiagnosticEngine &diags = session->diags;
  const SourceManager nothingRead(fs); // That no output may be.
  for (const std::string &input : inputs) {
    auto source = session->sources.open(input);
    if (!source) {
      diags.report<diag::CannotRead>(Place(), input,
                                     llvm::toString(source.takeError()));
      continue;
    }
    StringRef text = session->sources.text(*source);
    size_t offset = 0;
    if (!llvm::json::isUTF8(text, &offset)) {
      diags.report<diag::NotText>(
          Place(), session->sources.name(*source), offset,
          fmt::format("0x{:02x}", static_cast<unsigned char>(text[offset])));
      continue;
    }
    std::string formatted = editor::format(text);
    if (check) {
      if (formatted != text)
        diags.report<diag::NotFormatted>(Place(), input);
    } else if (input == "-" || formatted != text) {
      writeOutput(input, out, nothingRead, diags,
                  [&](raw_ostream &s) { s << formatted; });
    }
  }
  return diags.errorCount() == 0 ? Success : Errors;
}
