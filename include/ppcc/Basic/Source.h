// Source files, places in them, and the files of this machine that have an end.
#pragma once

#include "ppcc/Support/LLVM.h"

#include "llvm/ADT/IntrusiveRefCntPtr.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/VirtualFileSystem.h"

namespace ppcc {

/// A byte of a source file, as an offset into all files laid end to end; 0 is
/// "nowhere".
struct SourceLoc {
  uint32_t raw = 0;

  bool valid() const { return raw != 0; }
  SourceLoc advanced(uint32_t bytes) const { return {raw + bytes}; }
  bool operator==(const SourceLoc &) const = default;
};

/// The bytes from `begin` up to, not including, `end`.
struct SourceRange {
  SourceLoc begin, end;

  SourceRange() = default;
  SourceRange(SourceLoc at) : begin(at), end(at.advanced(at.valid())) {}
  SourceRange(SourceLoc begin, SourceLoc end) : begin(begin), end(end) {}
  bool valid() const { return begin.valid(); }
};

/// A place as people read it.
struct Position {
  StringRef file;
  uint32_t line = 0;   ///< From 1.
  uint32_t column = 0; ///< From 1, in bytes.
  uint32_t offset = 0; ///< From 0, in bytes of the file.
};

/// The files of one compilation: owns their text and translates places.
class SourceManager {
public:
  using FileSystem = llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem>;
  /// What several managers may share.
  struct Inputs {
    StringMap<std::string> streams; ///< By path: what can be read once only.
    /// The regular files that are to be written, with their paths.
    std::vector<std::pair<llvm::sys::fs::UniqueID, std::string>> outputs;
  };

  explicit SourceManager(FileSystem fs,
                         std::shared_ptr<Inputs> inputs = nullptr)
      : fs(std::move(fs)),
        inputs(inputs ? std::move(inputs) : std::make_shared<Inputs>()) {}
  SourceManager(const SourceManager &) = delete;

  /// What `-` is called.
  static constexpr const char *standardInput = "<stdin>";

  /// How many bytes a file may have that is larger than `maxBytes`, by its name
  /// and the beginning of its text.
  using LimitOf = function_ref<size_t(StringRef, StringRef)>;

  /// Reads `path` (`-` is standard input), once: a second call gives the same
  /// file. All sources are opened here. Errors: what the file system says, that
  /// the file is larger than `maxBytes` and, if given, the limit for such
  /// files, or that it is not a regular file: only what the user named on the
  /// command line may be a stream.
  llvm::Expected<uint32_t> open(StringRef path, LimitOf limitOf = nullptr,
                                bool mayStream = true);

  /// Adds text under a name of the caller's choice.
  uint32_t add(StringRef name, std::unique_ptr<llvm::MemoryBuffer> text);

  /// The file that is already here under this name.
  std::optional<uint32_t> lookup(StringRef name) const {
    auto found = byName.find(name);
    return found == byName.end() ? std::nullopt : std::optional(found->second);
  }

  /// The files that were read, in this order, without standard input.
  std::vector<StringRef> filesRead() const;
  /// No text may come from this regular file, be it as standard input.
  void addOutput(llvm::sys::fs::UniqueID file, StringRef path) {
    inputs->outputs.push_back({file, path.str()});
  }
  /// The path of the output that a file is; empty for none.
  StringRef outputOf(uint32_t file) const { return files[file].output; }

  StringRef text(uint32_t file) const {
    return files[file].buffer->getBuffer();
  }
  /// Frees the memory of a mapped file; what is needed again is read again.
  void dropPages(uint32_t file) const;
  StringRef name(uint32_t file) const { return files[file].name; }
  llvm::vfs::FileSystem &fileSystem() const { return *fs; }
  const std::shared_ptr<Inputs> &sharedInputs() const { return inputs; }

  SourceLoc loc(uint32_t file, size_t offset) const {
    return {files[file].base + static_cast<uint32_t>(offset)};
  }

  /// The place of line and column (both from 1) of the file called `name`, if
  /// it is here already and has such a place; else nowhere. Nothing is read:
  /// the name may come from a program that somebody sent.
  SourceLoc find(StringRef name, uint32_t line, uint32_t column) const;

  /// O(log lines). `at` must be valid.
  Position position(SourceLoc at) const;

  /// The line of text that holds `at`, without its end.
  StringRef lineText(SourceLoc at) const;

  /// Refuse files above this size; a schedule is some hundred lines.
  size_t maxBytes = size_t(1) << 20;
  /// The same for all files together.
  size_t maxTotalBytes = SIZE_MAX;
  /// False in a server, which nobody may keep waiting: no stream is read.
  bool readsStreams = true;

private:
  struct File {
    std::string name, output;
    std::unique_ptr<llvm::MemoryBuffer> buffer;
    uint32_t base = 0;
    bool isRead = false; ///< From the file system.
    mutable std::vector<uint32_t> lineStarts;
  };
  /// For all files together: their places are 32 bits, and what is added has
  /// room after them.
  static constexpr size_t maxAddressableBytes =
      UINT32_MAX - (uint32_t(1) << 24);

  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
  read(StringRef path, bool mayStream, LimitOf limitOf) const;
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
  readStream(llvm::sys::fs::file_t handle, StringRef path,
             LimitOf limitOf) const;
  const File &fileOf(SourceLoc at) const;
  const std::vector<uint32_t> &lineStarts(const File &file) const;

  FileSystem fs;
  std::shared_ptr<Inputs> inputs;
  std::deque<File> files; ///< Names and texts stay where they are.
  StringMap<uint32_t> byName;
  uint64_t nextBase = 1;
};

/// The real file system without pipes, devices and sockets, which may block or
/// have no end: opening one is an error, also when it takes the place of a file
/// meanwhile.
llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> regularFiles();

/// What is said of them.
inline constexpr StringRef notRegularMessage = "it is not a regular file";

} // namespace ppcc
