#include "Watch.h"

#include <thread>

using namespace ppcc;
namespace vfs = llvm::vfs;

WatchedFiles::Version WatchedFiles::versionOf(const Twine &path) {
  llvm::ErrorOr<vfs::Status> found = ProxyFileSystem::status(path);
  if (!found)
    return {};
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
