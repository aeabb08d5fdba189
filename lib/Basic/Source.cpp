#include "ppcc/Basic/Source.h"

#include "llvm/Support/FileSystem.h"

#include <algorithm>
#include <limits>

using namespace ppcc;
using llvm::StringRef;

/// The next `limit + 1` bytes at most of what may have no end: a terminal, a
/// pipe, a device.
static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readStream(llvm::sys::fs::file_t handle, size_t limit, StringRef name) {
  std::vector<char> text;
  char chunk[1 << 14];
  while (text.size() <= limit) {
    auto bytes = llvm::sys::fs::readNativeFile(handle, chunk);
    if (!bytes)
      return bytes.takeError();
    if (*bytes == 0)
      break;
    text.insert(text.end(), chunk, chunk + *bytes);
  }
  return llvm::MemoryBuffer::getMemBufferCopy({text.data(), text.size()}, name);
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
SourceManager::read(StringRef path) const {
  if (path == "-")
    return readStream(llvm::sys::fs::getStdinHandle(), maxBytes, path);
  auto status = fs->status(path);
  if (!status)
    return llvm::errorCodeToError(status.getError());
  if (status->isDirectory())
    return llvm::errorCodeToError(
        std::make_error_code(std::errc::is_a_directory));
  if (!status->isRegularFile()) {
    auto handle = llvm::sys::fs::openNativeFileForRead(path);
    if (!handle)
      return handle.takeError();
    auto text = readStream(*handle, maxBytes, path);
    llvm::sys::fs::closeFile(*handle);
    return text;
  }
  if (status->getSize() > maxBytes)
    return tooLarge();
  auto text = fs->getBufferForFile(path);
  if (!text)
    return llvm::errorCodeToError(text.getError());
  return std::move(*text);
}

llvm::Error SourceManager::tooLarge() const {
  return llvm::createStringError(
      std::errc::file_too_large,
      "it is larger than %zu bytes (--max-source-bytes)", maxBytes);
}

llvm::Expected<uint32_t> SourceManager::open(StringRef path) {
  if (std::optional<uint32_t> known = lookup(path))
    return *known;
  auto text = read(path);
  if (!text)
    return text.takeError();
  size_t bytes = (*text)->getBufferSize();
  if (bytes > maxBytes || nextBase + bytes > UINT32_MAX - 1)
    return tooLarge();
  bool isStdin = path == "-";
  uint32_t id = add(isStdin ? "<stdin>" : path, std::move(*text));
  File &file = files[id];
  file.isRead = !isStdin;
  llvm::sys::fs::file_status status;
  if (!isStdin) {
    if (auto found = fs->status(path); found && found->isRegularFile())
      file.identity = found->getUniqueID();
  } else if (!llvm::sys::fs::status(llvm::sys::fs::getStdinHandle(), status) &&
             llvm::sys::fs::is_regular_file(status)) {
    file.identity = status.getUniqueID();
  }
  return id;
}

bool SourceManager::hasRead(llvm::sys::fs::UniqueID identity) const {
  return std::any_of(files.begin(), files.end(), [&](const File &file) {
    return file.identity == identity;
  });
}

std::vector<StringRef> SourceManager::filesRead() const {
  std::vector<StringRef> names;
  for (const File &file : files)
    if (file.isRead)
      names.push_back(file.name);
  return names;
}

uint32_t SourceManager::add(StringRef name,
                            std::unique_ptr<llvm::MemoryBuffer> text) {
  uint32_t id = static_cast<uint32_t>(files.size());
  File &file = files.emplace_back();
  file.name = name.str();
  file.buffer = std::move(text);
  file.base = static_cast<uint32_t>(nextBase);
  nextBase += file.buffer->getBufferSize() + 1;
  byName.try_emplace(name, id);
  return id;
}

const SourceManager::File &SourceManager::fileOf(SourceLoc at) const {
  assert(at.valid());
  auto after = std::upper_bound(
      files.begin(), files.end(), at.raw,
      [](uint32_t raw, const File &file) { return raw < file.base; });
  assert(after != files.begin());
  return *std::prev(after);
}

const std::vector<uint32_t> &SourceManager::lineStarts(const File &file) const {
  if (file.lineStarts.empty()) {
    file.lineStarts.push_back(0);
    StringRef text = file.buffer->getBuffer();
    for (size_t end = text.find('\n'); end != StringRef::npos;
         end = text.find('\n', end + 1))
      file.lineStarts.push_back(static_cast<uint32_t>(end + 1));
  }
  return file.lineStarts;
}

Position SourceManager::position(SourceLoc at) const {
  const File &file = fileOf(at);
  uint32_t offset = at.raw - file.base;
  const auto &starts = lineStarts(file);
  auto line =
      std::upper_bound(starts.begin(), starts.end(), offset) - starts.begin();
  return {file.name, static_cast<uint32_t>(line),
          offset - starts[line - 1] + 1};
}

StringRef SourceManager::lineText(SourceLoc at) const {
  const File &file = fileOf(at);
  uint32_t offset = at.raw - file.base;
  const auto &starts = lineStarts(file);
  auto next = std::upper_bound(starts.begin(), starts.end(), offset);
  StringRef text = file.buffer->getBuffer().drop_front(*std::prev(next));
  return text.take_until([](char c) { return c == '\n' || c == '\r'; });
}

SourceLoc SourceManager::find(StringRef name, uint32_t line, uint32_t column) {
  auto found = byName.find(name);
  uint32_t id;
  if (found != byName.end()) {
    id = found->second;
  } else {
    auto opened = open(name);
    if (!opened) {
      llvm::consumeError(opened.takeError());
      return {};
    }
    id = *opened;
  }
  const File &file = files[id];
  const auto &starts = lineStarts(file);
  if (line == 0 || line > starts.size() || column == 0)
    return {};
  uint32_t offset = starts[line - 1] + column - 1;
  uint32_t end = line < starts.size()
                     ? starts[line]
                     : static_cast<uint32_t>(file.buffer->getBufferSize() + 1);
  return offset < end ? loc(id, offset) : SourceLoc{};
}
