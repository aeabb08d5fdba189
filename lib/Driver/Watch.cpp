#include "Watch.h"

#include <thread>

using namespace ppcc;
namespace vfs = llvm::vfs;

WatchedFiles::Version WatchedFiles::versionOf(const Twine &path) {
  llvm::ErrorOr<vfs::Status> found = ProxyFileSystem::status(path);
  if (!found)
    return {};
  // Nobody reads pipes and devices, and each process has its own `/dev/stdin`.
  if (!found->isRegularFile() && !found->isDirectory())
    return {{}, UINT64_MAX};
  return {found->getLastModificationTime(), found->getSize(),
          found->getUniqueID().getFile()};
}

llvm::ErrorOr<vfs::Status> WatchedFiles::status(const Twine &path) {
  versions.try_emplace(path.str(), versionOf(path));
  return ProxyFileSystem::status(path);
}

llvm::ErrorOr<std::unique_ptr<vfs::File>>
WatchedFiles::openFileForRead(const Twine &path) {
  versions.try_emplace(path.str(), versionOf(path));
  return ProxyFileSystem::openFileForRead(path);
}

std::string WatchedFiles::serialize() const {
  std::string lines;
  for (const auto &[path, version] : versions)
    if (!StringRef(path).contains('\n'))
      lines += fmt::format(
          "{} {} {} {}\n",
          std::chrono::nanoseconds(version.changed.time_since_epoch()).count(),
          version.size, version.file, path);
  return lines;
}

void WatchedFiles::deserialize(StringRef lines) {
  for (StringRef line : llvm::split(lines, '\n')) {
    int64_t changed;
    Version version;
    if (line.consumeInteger(10, changed) || !line.consume_front(" ") ||
        line.consumeInteger(10, version.size) || !line.consume_front(" ") ||
        line.consumeInteger(10, version.file) || !line.consume_front(" "))
      continue;
    version.changed += std::chrono::nanoseconds(changed);
    versions[line.str()] = version;
  }
}

bool WatchedFiles::hasChanged() {
  return llvm::any_of(versions, [&](const auto &one) {
    return versionOf(one.first) != one.second;
  });
}

void WatchedFiles::waitForChange() {
  while (!hasChanged())
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

std::string WatchedFiles::names() const {
  if (versions.empty())
    return "nothing";
  const std::string &first = versions.begin()->first;
  return versions.size() == 1
             ? first
             : fmt::format("{} and {} more", first, versions.size() - 1);
}
