// Writes files so that a failure leaves the old file whole.
#include "ppcc/Driver/Output.h"
#include "ppcc/Basic/Diagnostics/Files.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"

#include <climits>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace ppcc;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

using Writer = function_ref<void(raw_ostream &)>;

namespace {

std::error_code lastError() { return {errno, std::generic_category()}; }

/// Lets `write` fill an open file; gives what went wrong with it.
std::error_code fill(int file, Writer write) {
  llvm::raw_fd_ostream stream(file, /*shouldClose=*/false);
  write(stream);
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error(); // Its destructor would end the process over it.
  return error;
}

/// Where a path leads, through symbolic links.
struct Target {
  std::string path;
  fs::file_status status;
  /// A link of the kernel's, to what a process has open, is none that another
  /// file could take the place of.
  bool isOpenFile = false;

  explicit Target(StringRef name) : path(name) {
    constexpr int mostLinks = 40;
    char link[PATH_MAX];
    for (int i = 0; i != mostLinks; ++i) {
      ssize_t length = readlink(path.c_str(), link, sizeof link);
      if (length < 0)
        break;
      isOpenFile |= StringRef(path).starts_with("/proc/") ||
                    StringRef(path).starts_with("/dev/");
      StringRef to(link, length);
      SmallString<256> next(path::is_absolute(to) ? ""
                                                  : path::parent_path(path));
      path::append(next, to);
      path = next.str();
    }
  }

  std::string folder() const {
    StringRef parent = path::parent_path(path);
    return parent.empty() ? "." : parent.str();
  }
};

/// A file that is written beside the one that it is to replace. Where the
/// system allows it, it has no name before it is whole: nothing is left of a
/// run that is killed.
class Draft {
public:
  explicit Draft(std::string folder) : folder(std::move(folder)) {}
  Draft(const Draft &) = delete;
  Draft &operator=(const Draft &) = delete;
  ~Draft() {
    if (file >= 0)
      close(file);
    if (!name.empty())
      unlink(name.c_str());
    forget();
  }

  std::error_code open() {
    constexpr int flags = O_WRONLY | O_CLOEXEC;
    if (access("/proc/self/fd", X_OK) == 0)
      file = ::open(folder.c_str(), flags | O_TMPFILE, 0666);
    if (file >= 0)
      return {};
    return withFreeName([&](const char *free) {
      file = ::open(free, flags | O_CREAT | O_EXCL, 0666);
      if (file >= 0)
        llvm::sys::RemoveFileOnSignal(free);
      return file >= 0;
    });
  }

  int descriptor() const { return file; }

  std::error_code moveTo(const std::string &path) {
    std::string self = fmt::format("/proc/self/fd/{}", file);
    auto link = [&](const char *to) {
      return linkat(AT_FDCWD, self.c_str(), AT_FDCWD, to, AT_SYMLINK_FOLLOW) ==
             0;
    };
    if (name.empty()) {
      if (link(path.c_str()))
        return {};
      if (std::error_code error = withFreeName(link))
        return error;
    }
    if (rename(name.c_str(), path.c_str()) != 0)
      return lastError();
    forget();
    return {};
  }

private:
  /// Calls `make` with names that nothing has until it has made a file.
  std::error_code withFreeName(function_ref<bool(const char *)> make) {
    for (int i = 0;; ++i) {
      name = fmt::format("{}/.ppcc-{}-{}", folder, getpid(), i);
      if (make(name.c_str()))
        return {};
      std::error_code error = lastError();
      forget();
      if (error != std::errc::file_exists)
        return error;
    }
  }

  void forget() {
    if (!name.empty())
      llvm::sys::DontRemoveFileOnSignal(name);
    name.clear();
  }

  std::string folder, name;
  int file = -1;
};

/// A device or a pipe, which cannot be replaced by a file.
std::error_code writeInPlace(const std::string &path, Writer write) {
  int file = open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (file < 0)
    return lastError();
  std::error_code error = fill(file, write);
  if (close(file) != 0 && !error)
    error = lastError();
  return error;
}

std::error_code replace(const Target &target, Writer write,
                        function_ref<bool()> isWanted) {
  Draft draft(target.folder());
  if (std::error_code error = draft.open())
    return error;
  if (std::error_code error = fill(draft.descriptor(), write);
      error || !isWanted())
    return error;
  if (fs::exists(target.status) &&
      fchmod(draft.descriptor(), target.status.permissions()) != 0)
    return lastError();
  return draft.moveTo(target.path);
}

} // namespace

ExitCode ppcc::writeOutput(StringRef path, raw_ostream &out,
                           const SourceManager &sources,
                           DiagnosticEngine &diags, Writer write) {
  auto isGood = [&, errorsBefore = diags.errorCount()] {
    return diags.errorCount() == errorsBefore;
  };
  if (path == "-") {
    write(out);
    return isGood() ? Success : Errors;
  }
  Target target(path);
  std::error_code error = fs::status(path, target.status);
  if (error == std::errc::no_such_file_or_directory)
    error = {};
  bool isRegular = !fs::exists(target.status) ||
                   (fs::is_regular_file(target.status) && !target.isOpenFile);
  if (fs::is_regular_file(target.status) &&
      sources.hasRead(target.status.getUniqueID()))
    diags.report<diag::OutputIsInput>({}, path);
  else if (!error)
    error = isRegular ? replace(target, write, isGood)
                      : writeInPlace(path.str(), write);
  if (error)
    diags.report<diag::CannotWrite>({}, path, error.message());
  return isGood() ? Success : Errors;
}

ExitCode ppcc::writeOutput(StringRef path, raw_ostream &out, Session &session,
                           Writer write) {
  return writeOutput(path, out, session.sources, session.diags, write);
}

bool ppcc::isSameOutput(StringRef a, StringRef b) {
  auto whole = [](StringRef name) {
    Target target(name);
    SmallString<256> folder;
    if (fs::real_path(target.folder(), folder))
      folder = target.folder();
    path::append(folder, path::filename(target.path));
    return folder;
  };
  return fs::equivalent(a, b) || whole(a) == whole(b);
}
