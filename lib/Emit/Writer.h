// A buffer in front of a stream, for numbers and short texts by the million.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Support/Printable.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

namespace ppcc {

class Writer {
public:
  explicit Writer(llvm::raw_ostream &out)
      : out(out), buffer(std::make_unique_for_overwrite<char[]>(capacity)),
        at(buffer.get()) {}
  ~Writer() { flush(); }
  Writer(const Writer &) = delete;
  Writer &operator=(const Writer &) = delete;

  void put(char c) {
    need(1);
    *at++ = c;
  }
  void put(llvm::StringRef text) {
    if (text.size() > capacity) {
      flush();
      out << text;
      return;
    }
    need(text.size());
    std::memcpy(at, text.data(), text.size());
    at += text.size();
  }
  void number(int64_t value) {
    need(20);
    at = std::to_chars(at, at + 20, value).ptr;
  }
  /// The text as a string of JSON.
  void json(llvm::StringRef content) {
    std::string quoted;
    llvm::raw_string_ostream(quoted)
        << llvm::json::Value(llvm::json::fixUTF8(content));
    put(printableJson(quoted));
  }
  /// A list of JSON, the items of which `put` writes.
  template <class Range, class Put> void list(const Range &range, Put put) {
    char before = '[';
    for (const auto &item : range) {
      this->put(std::exchange(before, ','));
      put(item);
    }
    this->put(before == '[' ? "[]" : "]");
  }
  /// The action as in `0F3`.
  void cell(const Program &program, const Action &action) {
    text.clear();
    appendCell(program, action, text);
    put(llvm::StringRef(text.data(), text.size()));
  }

private:
  static constexpr size_t capacity = size_t(1) << 16;

  void need(size_t bytes) {
    if (bytes > size_t(buffer.get() + capacity - at))
      flush();
  }
  void flush() {
    out.write(buffer.get(), at - buffer.get());
    at = buffer.get();
  }

  llvm::raw_ostream &out;
  std::unique_ptr<char[]> buffer;
  char *at;
  llvm::SmallVector<char, 32> text;
};

} // namespace ppcc
