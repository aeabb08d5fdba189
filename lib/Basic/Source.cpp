#include "ppcc/Basic/Source.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace ppcc;

/// What is read of a file may have no end: a terminal, a pipe, a device.
static llvm::Error readUpTo(size_t bytes, llvm::sys::fs::file_t handle,
                            SmallVector<char, 0> &text) {
  constexpr size_t chunk = size_t(1) << 16;
  while (text.size() < bytes) {
    size_t size = text.size();
    text.resize_for_overwrite(size + chunk);
    auto read = llvm::sys::fs::readNativeFile(
        handle, MutableArrayRef<char>(text).drop_front(size));
    text.truncate(size + (read ? *read : 0));
    if (!read)
      return read.takeError();
    if (*read == 0)
      break;
  }
  return llvm::Error::success();
}

static llvm::Error tooLarge(size_t limit) {
  return llvm::createStringError(
      std::errc::file_too_large,
      "it is larger than %zu bytes (--max-source-bytes)", limit);
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
SourceManager::readStream(llvm::sys::fs::file_t handle, StringRef path,
                          LimitOf limitOf) const {
  auto [known, isNew] = inputs->streams.try_emplace(path);
  SmallVector<char, 0> text(known->second.begin(), known->second.end());
  size_t limit = maxBytes;
  if (llvm::Error error =
          isNew ? readUpTo(limit + 1, handle, text) : llvm::Error::success())
    return error;
  if (text.size() > limit) {
    limit = limitOf(path, {text.data(), text.size()});
    if (llvm::Error error =
            isNew ? readUpTo(limit + 1, handle, text) : llvm::Error::success())
      return error;
  }
  known->second.assign(text.begin(), text.end());
  if (text.size() > limit)
    return tooLarge(limit);
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(text), path);
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
SourceManager::read(StringRef path, bool mayStream, LimitOf limitOf) const {
  if (path == "-" && mayStream)
    return readStream(llvm::sys::fs::getStdinHandle(), path, limitOf);
  auto status = fs->status(path);
  if (!status)
    return llvm::errorCodeToError(status.getError());
  if (status->isDirectory())
    return llvm::errorCodeToError(
        std::make_error_code(std::errc::is_a_directory));
  bool isRegular = status->isRegularFile();
  if (!isRegular && mayStream) {
    auto handle = llvm::sys::fs::openNativeFileForRead(path);
    if (!handle)
      return handle.takeError();
    auto text = readStream(*handle, path, limitOf);
    llvm::sys::fs::closeFile(*handle);
    return text;
  }
  if (!isRegular)
    return llvm::createStringError(std::errc::not_supported, "%s",
                                   notRegularMessage.data());
  auto file = fs->openFileForRead(path);
  if (!file)
    return llvm::errorCodeToError(file.getError());
  if (status = (*file)->status(); !status)
    return llvm::errorCodeToError(status.getError());
  size_t size = status->getSize(),
         limit = std::min(maxBytes, maxAddressableBytes);
  if (size > maxBytes) {
    auto begin = (*file)->getBuffer(path, maxBytes, /*RequiresNull=*/false);
    if (!begin)
      return llvm::errorCodeToError(begin.getError());
    limit = std::min(limitOf(path, (*begin)->getBuffer()), maxAddressableBytes);
  }
  if (size > limit)
    return tooLarge(limit);
  // A schedule is copied: who writes it anew may cut what is mapped.
  auto text = (*file)->getBuffer(path, size, /*RequiresNull=*/true,
                                 /*IsVolatile=*/size <= maxBytes);
  if (!text)
    return llvm::errorCodeToError(text.getError());
  return std::move(*text);
}

llvm::Expected<uint32_t> SourceManager::open(StringRef path, LimitOf limitOf,
                                             bool mayStream) {
  bool isStdin = path == "-" && readsStreams && mayStream;
  StringRef name = isStdin ? standardInput : path;
  if (std::optional<uint32_t> known = lookup(name))
    return *known;
  auto text = read(
      path, readsStreams && mayStream,
      limitOf ? limitOf : [&](StringRef, StringRef) { return maxBytes; });
  if (!text)
    return text.takeError();
  size_t limit = std::min(maxAddressableBytes, maxTotalBytes);
  if (nextBase + (*text)->getBufferSize() > limit)
    return llvm::createStringError(
        std::errc::file_too_large,
        "it and the files before it are larger than %zu bytes", limit);
  uint32_t id = add(name, std::move(*text));
  File &file = files[id];
  file.isRead = !isStdin;
  llvm::sys::fs::UniqueID identity;
  llvm::sys::fs::file_status status;
  if (!isStdin) {
    if (auto found = fs->status(path))
      identity = found->getUniqueID();
  } else if (!llvm::sys::fs::status(llvm::sys::fs::getStdinHandle(), status)) {
    identity = status.getUniqueID();
  }
  for (const auto &[output, itsPath] : inputs->outputs)
    if (output == identity)
      file.output = itsPath;
  return id;
}

std::vector<StringRef> SourceManager::filesRead() const {
  std::vector<StringRef> names;
  for (const File &file : files)
    if (file.isRead)
      names.push_back(file.name);
  return names;
}

// LLVM's dontNeedIfMmap() is posix_madvise(), which glibc ignores.
void SourceManager::dropPages(uint32_t file) const {
  const llvm::MemoryBuffer &text = *files[file].buffer;
  if (text.getBufferKind() == llvm::MemoryBuffer::MemoryBuffer_MMap)
    madvise(const_cast<char *>(text.getBufferStart()), text.getBufferSize(),
            MADV_DONTNEED);
}

uint32_t SourceManager::add(StringRef name,
                            std::unique_ptr<llvm::MemoryBuffer> text) {
  uint32_t id = uint32_t(files.size());
  File &file = files.emplace_back();
  file.name = name.str();
  file.buffer = std::move(text);
  file.base = uint32_t(nextBase);
  nextBase += file.buffer->getBufferSize() + 1;
  byName.try_emplace(name, id);
  return id;
}

const SourceManager::File &SourceManager::fileOf(SourceLoc at) const {
  assert(at.valid());
  auto after =
      llvm::upper_bound(files, at.raw, [](uint32_t raw, const File &file) {
        return raw < file.base;
      });
  assert(after != files.begin());
  return *std::prev(after);
}

const std::vector<uint32_t> &SourceManager::lineStarts(const File &file) const {
  if (file.lineStarts.empty()) {
    StringRef text = file.buffer->getBuffer();
    // A mark of the encoding is no part of the first line.
    file.lineStarts.push_back(text.starts_with("\xEF\xBB\xBF") ? 3 : 0);
    for (size_t end = text.find('\n'); end != StringRef::npos;
         end = text.find('\n', end + 1))
      file.lineStarts.push_back(uint32_t(end + 1));
  }
  return file.lineStarts;
}

Position SourceManager::position(SourceLoc at) const {
  const File &file = fileOf(at);
  const auto &starts = lineStarts(file);
  uint32_t offset = std::max(at.raw - file.base, starts.front());
  uint32_t line = llvm::upper_bound(starts, offset) - starts.begin();
  return {file.name, line, offset - starts[line - 1] + 1, offset};
}

StringRef SourceManager::lineText(SourceLoc at) const {
  Position place = position(at);
  StringRef text = fileOf(at).buffer->getBuffer().drop_front(place.offset -
                                                             place.column + 1);
  text = text.take_front(text.find('\n'));
  text.consume_back("\r");
  return text;
}

SourceLoc SourceManager::find(StringRef name, uint32_t line,
                              uint32_t column) const {
  auto id = lookup(name);
  if (!id)
    return {};
  const File &file = files[*id];
  const auto &starts = lineStarts(file);
  if (line == 0 || line > starts.size() || column == 0)
    return {};
  uint32_t start = starts[line - 1];
  uint32_t end = line < starts.size()
                     ? starts[line]
                     : uint32_t(file.buffer->getBufferSize() + 1);
  return column <= end - start ? loc(*id, start + column - 1) : SourceLoc{};
}

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
