// `ppcc fmt`: schedules in one style.
#include "Options.h"
#include "ppcc/AST/AST.h"
#include "ppcc/Basic/Diagnostics/Files.h"
#include "ppcc/Driver/Output.h"
#include "ppcc/Editor/Editor.h"
#include "ppcc/Parse/Parser.h"

using namespace ppcc;

int ppcc::runFmt(const Invocation &call) {
  std::vector<std::string> inputs;
  bool check = false;
  ConsoleOptions console;
  OptionParser parser(call, "ppcc fmt");
  parser.positional("FILE", inputs,
                    "Files, each of which is written anew, or `-`: from "
                    "standard input to standard output");
  parser.flag("--check", check,
              "Write nothing; the exit status is 1 when a file would change");
  addErrorOptions(parser, console);
  if (std::optional<int> code = parser.parse())
    return *code;

  auto session = consoleSession(call, console);
  DiagnosticEngine &diags = session->diags;
  for (const std::string &input : inputs) {
    // A pipe cannot be written anew.
    session->sources.readsStreams = check || input == "-";
    auto source = session->open(input);
    if (!source)
      continue;
    ast::Context context;
    if (!parseFile(*source, session->sources, context, diags))
      continue; // What is no schedule stays as it is.
    StringRef text = session->sources.text(*source);
    bool isStream =
        session->sources.name(*source) == SourceManager::standardInput;
    std::string formatted = editor::format(text);
    if (check) {
      if (formatted != text)
        diags.report<diag::NotFormatted>(Location(), input);
    } else if (isStream || formatted != text) {
      writeOutput(isStream ? "-" : input, call.out, *session,
                  [&](raw_ostream &s) { s << formatted; });
    }
  }
  return diags.errorCount() == 0 ? Success : Errors;
}
