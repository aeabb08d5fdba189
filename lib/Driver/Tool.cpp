// What the programs have in common around their work.
#include "ppcc/Basic/RegularFiles.h"
#include "ppcc/Driver/Driver.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"

#include <new>
#include <stdexcept>
#include <unistd.h>

using namespace ppcc;

static const char *toolName = "ppcc";

/// Ends the run; called where an allocation fails, and so without any.
[[noreturn]] static void endWithoutMemory() {
  constexpr StringRef text =
      ": error: out of memory\n"
      "note: give the schedule fewer ranks or microbatches, or the process "
      "more memory\n";
  for (StringRef part : {StringRef(toolName), text})
    if (write(STDERR_FILENO, part.data(), part.size()) < 0)
      break;
  llvm::sys::RunInterruptHandlers(); // Removes unfinished files.
  _exit(1);
}

int ppcc::runTool(int argc, const char *const *argv, ToolMain *tool) {
  if (argc > 0)
    toolName = llvm::sys::path::filename(argv[0]).data();
  std::set_new_handler(endWithoutMemory);
  llvm::install_bad_alloc_error_handler(
      [](void *, const char *, bool) { endWithoutMemory(); });
  int code = 1;
  try {
    code = tool(
        {{argv, size_t(argc)}, regularFiles(), llvm::outs(), llvm::errs()});
  } catch (const std::bad_alloc &) { // Of a size that is none.
    endWithoutMemory();
  } catch (const std::length_error &) {
    endWithoutMemory();
  }
  llvm::outs().flush();
  if (std::error_code error = llvm::outs().error()) {
    llvm::outs().clear_error(); // Its destructor would end the process over it.
    llvm::errs() << toolName << ": error: cannot write to standard output: "
                 << error.message() << '\n';
    return 1;
  }
  return code;
}
