// Which files a compilation depends on, and whether they change.
#pragma once

#include "ppcc/Support/LLVM.h"
#include "llvm/Support/VirtualFileSystem.h"

namespace ppcc {

/// A file system that notes what was asked of it, files that were not there
/// among them.
class WatchedFiles : public llvm::vfs::ProxyFileSystem {
public:
  using ProxyFileSystem::ProxyFileSystem;

  llvm::ErrorOr<llvm::vfs::Status> status(const Twine &path) override;
  llvm::ErrorOr<std::unique_ptr<llvm::vfs::File>>
  openFileForRead(const Twine &path) override;

  /// What was asked for, as text of a line each, and the same from another
  /// process.
  std::string serialize() const;
  void deserialize(StringRef lines);

  /// Whether one of the files is now another than when it was first asked for.
  bool hasChanged();
  /// Waits for that. Looks 20 times a second, which costs less than a
  /// thousandth of a processor and works on every file system.
  void waitForChange();
  /// `a.pp` or `a.pp and 2 more`.
  std::string names() const;

private:
  /// What tells two versions of a file apart: an editor that writes a new file
  /// in the place of the old one changes the identity.
  struct Version {
    llvm::sys::TimePoint<> changed;
    uint64_t size = 0, file = 0;
    bool operator==(const Version &) const = default;
  };
  Version versionOf(const Twine &path);

  std::map<std::string, Version> versions;
};

} // namespace ppcc
