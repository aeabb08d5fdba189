// Writes files so that a failure leaves the old file whole.
#include "ppcc/Driver/Output.h"

#include "llvm/Support/FileSystem.h"

#include <fmt/format.h>

using namespace ppcc;
using llvm::raw_ostream;
using llvm::StringRef;

using Writer = llvm::function_ref<bool(raw_ostream &)>;

/// Takes the error of a file stream, whose destructor would end the process
/// over it.
static std::error_code takeError(llvm::raw_fd_ostream &stream) {
  std::error_code error = stream.error();
  stream.clear_error();
  return error;
}

/// Fills an open file; gives what went wrong with it.
static std::error_code fill(llvm::raw_fd_ostream &stream, Writer write,
                            bool &wanted) {
  wanted = write(stream);
  stream.flush();
  return takeError(stream);
}

/// A device or a pipe, which cannot be replaced by a file.
static std::error_code writeInPlace(StringRef path, Writer write,
                                    bool &wanted) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error, llvm::sys::fs::OF_None);
  return error ? error : fill(stream, write, wanted);
}

static std::error_code replace(StringRef path, Writer write, bool &wanted) {
  auto temporary = llvm::sys::fs::TempFile::create(
      path + ".%%%%%%", 0666 & ~llvm::sys::fs::getUmask());
  if (!temporary)
    return llvm::errorToErrorCode(temporary.takeError());
  std::error_code error;
  {
    llvm::raw_fd_ostream stream(temporary->FD, /*shouldClose=*/false);
    error = fill(stream, write, wanted);
  }
  llvm::Error last =
      error || !wanted ? temporary->discard() : temporary->keep(path);
  std::error_code lastError = llvm::errorToErrorCode(std::move(last));
  return error ? error : lastError;
}

bool ppcc::writeOutput(StringRef path, raw_ostream &out,
                       DiagnosticEngine &diags, Writer write) {
  if (path == "-")
    return write(out);
  llvm::sys::fs::file_status status;
  bool exists =
      !llvm::sys::fs::status(path, status) && llvm::sys::fs::exists(status);
  bool isSpecial = exists && !llvm::sys::fs::is_regular_file(status);
  bool wanted = true;
  std::error_code error = isSpecial ? writeInPlace(path, write, wanted)
                                    : replace(path, write, wanted);
  if (error)
    diags.report<diag::CannotWrite>({}, path, error.message());
  return wanted && !error;
}

int ppcc::closeStandardOutput(int exitCode) {
  llvm::outs().flush();
  if (std::error_code error = takeError(llvm::outs())) {
    llvm::errs() << "ppcc: error: cannot write to standard output: "
                 << error.message() << '\n';
    return 1;
  }
  return exitCode;
}
