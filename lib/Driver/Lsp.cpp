// `ppcc lsp`: the language server on the standard streams.
#include "Options.h"
#include "ppcc/LanguageServer/LanguageServer.h"

using namespace ppcc;

static std::string readOptions(ArrayRef<const char *> args, Request &request) {
  BuildOptions options;
  std::string errorText;
  llvm::raw_string_ostream err(errorText);
  if (parseOptions({args, nullptr, llvm::nulls(), err}, options) &&
      errorText.empty())
    errorText = "what is asked for here compiles nothing";
  request = std::move(options.request);
  return errorText;
}

int ppcc::runLsp(const Invocation &call) {
  OptionParser parser(call, "ppcc lsp");
  if (std::optional<int> code = parser.parse())
    return *code;
  bool isShutDown =
      lsp::serve(call.files, versionText(), readOptions, call.out);
  return isShutDown ? Success : Errors;
}
