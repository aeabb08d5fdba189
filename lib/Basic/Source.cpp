#include "ppcc/Basic/Source.h"

#include <algorithm>
#include <limits>

using namespace ppcc;
using llvm::StringRef;

llvm::Expected<uint32_t> SourceManager::open(StringRef path) {
  if (auto found = byName.find(path); found != byName.end())
    return found->second;
  auto tooLarge = [&] {
    return llvm::createStringError(
        std::errc::file_too_large,
        "it is larger than %zu bytes (--max-source-bytes)", maxBytes);
  };
  std::unique_ptr<llvm::MemoryBuffer> text;
  if (path == "-") {
    auto buffer = llvm::MemoryBuffer::getSTDIN();
    if (!buffer)
      return llvm::errorCodeToError(buffer.getError());
    text = std::move(*buffer);
  } else {
    auto status = fs->status(path);
    if (!status)
      return llvm::errorCodeToError(status.getError());
    if (status->isDirectory())
      return llvm::errorCodeToError(
          std::make_error_code(std::errc::is_a_directory));
    if (status->getSize() > maxBytes)
      return tooLarge();
    auto buffer = fs->getBufferForFile(path);
    if (!buffer)
      return llvm::errorCodeToError(buffer.getError());
    text = std::move(*buffer);
  }
  if (text->getBufferSize() > maxBytes ||
      nextBase + text->getBufferSize() > UINT32_MAX - 1)
    return tooLarge();
  return add(path == "-" ? "<stdin>" : path, std::move(text));
}

uint32_t SourceManager::add(StringRef name,
                            std::unique_ptr<llvm::MemoryBuffer> text) {
  uint32_t id = static_cast<uint32_t>(files.size());
  File file{name.str(), std::move(text), static_cast<uint32_t>(nextBase), {}};
  nextBase += file.buffer->getBufferSize() + 1;
  files.push_back(std::move(file));
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
