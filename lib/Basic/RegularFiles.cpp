#include "ppcc/Basic/RegularFiles.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <fcntl.h>
#include <unistd.h>

using namespace ppcc;
namespace vfs = llvm::vfs;

namespace {

class RegularFile : public vfs::File {
public:
  RegularFile(int descriptor, vfs::Status status)
      : descriptor(descriptor), known(std::move(status)) {}
  ~RegularFile() override { close(); }

  llvm::ErrorOr<vfs::Status> status() override { return known; }
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>>
  getBuffer(const Twine &name, int64_t size, bool hasNull,
            bool isVolatile) override {
    return llvm::MemoryBuffer::getOpenFile(
        descriptor, name, size < 0 ? known.getSize() : uint64_t(size), hasNull,
        isVolatile);
  }
  std::error_code close() override {
    if (descriptor >= 0)
      ::close(std::exchange(descriptor, -1));
    return {};
  }

private:
  int descriptor;
  vfs::Status known;
};

class RegularFiles : public vfs::ProxyFileSystem {
public:
  using ProxyFileSystem::ProxyFileSystem;

  llvm::ErrorOr<std::unique_ptr<vfs::File>>
  openFileForRead(const Twine &path) override {
    auto isOne = [](const llvm::sys::fs::file_status &status) {
      return status.type() == llvm::sys::fs::file_type::regular_file;
    };
    // To open some devices does something, and a pipe blocks: look first.
    llvm::sys::fs::file_status status;
    if (std::error_code error = llvm::sys::fs::status(path, status))
      return error;
    std::error_code refused = std::make_error_code(std::errc::not_supported);
    if (!isOne(status))
      return refused;
    int descriptor =
        ::open(path.str().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0)
      return std::error_code(errno, std::generic_category());
    std::error_code error = llvm::sys::fs::status(descriptor, status);
    auto file = std::make_unique<RegularFile>(
        descriptor, vfs::Status::copyWithNewName(status, path));
    if (error || !isOne(status))
      return error ? error : refused;
    return std::unique_ptr<vfs::File>(std::move(file));
  }
};

} // namespace

llvm::IntrusiveRefCntPtr<vfs::FileSystem> ppcc::regularFiles() {
  return llvm::makeIntrusiveRefCnt<RegularFiles>(vfs::getRealFileSystem());
}
