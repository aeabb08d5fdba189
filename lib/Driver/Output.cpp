// Writes files so that a failure leaves the old ones whole.
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

using Fill = function_ref<void(raw_ostream &)>;

namespace {

std::error_code lastError() { return {errno, std::generic_category()}; }

/// Lets `write` fill an open file; gives what went wrong with it.
std::error_code fill(int file, Fill write) {
  llvm::raw_fd_ostream stream(file, /*shouldClose=*/false);
  write(stream);
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error(); // Its destructor would end the process over it.
  return error;
}

/// The number of an open file of this process that a path names.
std::optional<int> openFileAt(StringRef path) {
  int file = -1;
  bool isOne = (path.consume_front("/dev/fd/") ||
                path.consume_front("/proc/self/fd/")) &&
               !path.getAsInteger(10, file);
  return isOne ? std::optional(file) : std::nullopt;
}

/// Where a path leads, through symbolic links.
struct Target {
  std::string path;
  std::error_code error; ///< Of looking at it, unless it is not there.
  fs::file_status status;
  // Has no path that another file could take.
  std::optional<int> openFile;
  bool isOfOtherProcess = false; ///< What another process has open.

  explicit Target(StringRef name) : path(name) {
    error = fs::status(name, status);
    if (error == std::errc::no_such_file_or_directory)
      error = {};
    constexpr int maxSymlinks = 40;
    char link[PATH_MAX];
    for (int i = 0; i != maxSymlinks; ++i) {
      if ((openFile = openFileAt(path)))
        break;
      ssize_t length = readlink(path.c_str(), link, sizeof link);
      isOfOtherProcess = length >= 0 && StringRef(path).starts_with("/proc/");
      if (length < 0 || isOfOtherProcess)
        break;
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

  /// A regular file, or none that is there, and so one to be replaced.
  bool isReplaceable() const {
    return !openFile && !isOfOtherProcess &&
           (!fs::exists(status) || fs::is_regular_file(status));
  }
  /// Why the user may not replace what is there, though the folder would let
  /// them.
  std::string protectionError() const {
    if (!fs::exists(status) || !isReplaceable())
      return "";
    if (status.getUser() != geteuid())
      return "it belongs to another user";
    return status.permissions() & fs::owner_write ? ""
                                                  : "it is write-protected";
  }
};

/// A file that is written beside the one that it is to replace. Where the
/// system allows it, it has no name before it is whole: nothing is left of a
/// run that is killed.
class TemporaryFile {
public:
  explicit TemporaryFile(std::string folder) : folder(std::move(folder)) {}
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;
  ~TemporaryFile() {
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

/// A file on the way to what it is to be.
class Output {
public:
  Output(const OutputFile &file, raw_ostream &out) : file(file), out(out) {
    if (file.path != "-")
      target.emplace(file.path);
  }

  /// What speaks against it, or nothing.
  std::string error() const {
    return !target ? ""
           : fs::is_directory(target->status)
               ? std::make_error_code(std::errc::is_a_directory).message()
           : target->error ? target->error.message()
                           : target->protectionError();
  }
  void excludeFrom(SourceManager &sources) const {
    fs::file_status status = target ? target->status : fs::file_status();
    if (!target && &out == &llvm::outs())
      fs::status(STDOUT_FILENO, status);
    if (fs::is_regular_file(status))
      sources.addOutput(status.getUniqueID(), file.path);
  }

  std::error_code open() {
    if (!target || !target->isReplaceable())
      return {};
    temporary.emplace(target->folder());
    return temporary->open();
  }
  std::error_code write() {
    if (!target)
      return file.write(out), std::error_code();
    if (temporary)
      return fill(temporary->descriptor(), file.write);
    if (target->openFile)
      return fill(*target->openFile, file.write);
    int device = ::open(target->path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (device < 0)
      return lastError();
    std::error_code error = fill(device, file.write);
    return close(device) != 0 && !error ? lastError() : error;
  }
  std::error_code finish() {
    if (!temporary)
      return {};
    if (fs::exists(target->status) &&
        fchmod(temporary->descriptor(), target->status.permissions()) != 0)
      return lastError();
    return temporary->moveTo(target->path);
  }

  const OutputFile &file;

private:
  raw_ostream &out;
  std::optional<Target> target; ///< None for `-`.
  std::optional<TemporaryFile> temporary;
};

} // namespace

ExitCode ppcc::writeOutputs(ArrayRef<OutputFile> files, raw_ostream &out,
                            Session &session) {
  DiagnosticEngine &diags = session.diags;
  size_t errorsBefore = diags.errorCount();
  std::deque<Output> outputs;
  for (const OutputFile &file : files) {
    const Output &output = outputs.emplace_back(file, out);
    auto before = files.take_front(&file - files.begin());
    auto *same = llvm::find_if(before, [&](const OutputFile &other) {
      return isSameFile(other.path, file.path, out);
    });
    if (same != before.end())
      diags.report<diag::CannotWrite>(
          {}, file.path, "it is the output `" + same->path.str() + "`, too");
    else if (std::string error = output.error(); !error.empty())
      diags.report<diag::CannotWrite>({}, file.path, error);
  }
  for (auto step : {&Output::open, &Output::write, &Output::finish})
    for (Output &output : outputs) {
      if (diags.errorCount() != errorsBefore)
        return Errors;
      if (std::error_code error = (output.*step)())
        diags.report<diag::CannotWrite>({}, output.file.path, error.message());
    }
  return diags.errorCount() == errorsBefore ? Success : Errors;
}

bool ppcc::prepareOutputs(ArrayRef<StringRef> paths, raw_ostream &out,
                          Session &session) {
  bool isGood = true;
  for (StringRef path : paths) {
    if (path.empty())
      continue;
    OutputFile file{path, nullptr};
    Output output(file, out);
    output.excludeFrom(session.sources);
    std::string error = output.error();
    if (std::error_code failed; error.empty() && (failed = output.open()))
      error = failed.message();
    if (!error.empty())
      isGood = session.diags.report<diag::CannotWrite>({}, path, error);
  }
  return isGood;
}

ExitCode ppcc::writeOutput(StringRef path, raw_ostream &out, Session &session,
                           Fill write) {
  return writeOutputs(OutputFile{path, write}, out, session);
}

bool ppcc::isSameFile(StringRef a, StringRef b, const raw_ostream &out) {
  struct File {
    std::optional<fs::UniqueID> identity;
    SmallString<256> path; ///< Of one that is not there.
  };
  auto find = [&](StringRef name) {
    File file;
    fs::file_status status;
    if (name == "-") {
      if (&out == &llvm::outs() && !fs::status(STDOUT_FILENO, status))
        file.identity = status.getUniqueID();
      file.path = name;
      return file;
    }
    Target target(name);
    if (fs::exists(target.status))
      file.identity = target.status.getUniqueID();
    if (fs::real_path(target.folder(), file.path))
      file.path = target.folder();
    path::append(file.path, path::filename(target.path));
    return file;
  };
  if (a.empty() || b.empty())
    return false;
  File first = find(a), second = find(b);
  if (!first.identity || !second.identity)
    return first.path == second.path;
  fs::UniqueID sink; // Where nothing is lost that should be kept.
  return *first.identity == *second.identity &&
         (fs::getUniqueID("/dev/null", sink) || *first.identity != sink);
}
