// What stands in the place of library code that a module for many systems
// cannot hold. ANTLR's static library is made for programs: its input stream
// has a thread-local at a fixed place, and it reads a flag of glibc directly.
// glibc has arc4random from 2.36 on only.
#include "ANTLRInputStream.h"
#include "misc/Interval.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ConvertUTF.h"

#include <sys/random.h>

using namespace antlr4;

/// That there may be other threads.
extern "C" {
char __libc_single_threaded = 0;

uint32_t arc4random() noexcept {
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number)
    ;
  return number;
}
}

ANTLRInputStream::ANTLRInputStream(const std::string &input) { load(input); }

void ANTLRInputStream::load(const std::string &input) {
  llvm::StringRef text = input;
  text.consume_front("\xEF\xBB\xBF");
  auto *from = reinterpret_cast<const llvm::UTF8 *>(text.begin());
  std::vector<llvm::UTF32> points(text.size());
  llvm::UTF32 *to = points.data();
  llvm::ConvertUTF8toUTF32(
      &from, reinterpret_cast<const llvm::UTF8 *>(text.end()), &to,
      to + points.size(), llvm::lenientConversion);
  _data.assign(points.data(), to);
  p = 0;
}

void ANTLRInputStream::load(std::istream &stream) {
  load(std::string(std::istreambuf_iterator<char>(stream), {}));
}

void ANTLRInputStream::reset() { p = 0; }
void ANTLRInputStream::consume() { ++p; }
size_t ANTLRInputStream::LA(ssize_t i) {
  ssize_t at = ssize_t(p) + i - (i > 0);
  bool isIn = i != 0 && at >= 0 && at < ssize_t(_data.size());
  return isIn ? _data[at] : i == 0 ? 0 : IntStream::EOF;
}
size_t ANTLRInputStream::LT(ssize_t i) { return LA(i); }
size_t ANTLRInputStream::index() { return p; }
size_t ANTLRInputStream::size() { return _data.size(); }
ssize_t ANTLRInputStream::mark() { return -1; }
void ANTLRInputStream::release(ssize_t) {}
void ANTLRInputStream::seek(size_t index) {
  p = std::min(index, _data.size());
}
std::string ANTLRInputStream::getText(const misc::Interval &interval) {
  std::string text;
  char bytes[4];
  for (ssize_t i = interval.a;
       i <= interval.b && i < ssize_t(_data.size()); ++i) {
    char *end = bytes;
    llvm::ConvertCodePointToUTF8(_data[i], end);
    text.append(bytes, end);
  }
  return text;
}
std::string ANTLRInputStream::getSourceName() const { return name; }
std::string ANTLRInputStream::toString() const {
  return const_cast<ANTLRInputStream *>(this)->getText(
      misc::Interval(ssize_t(0), ssize_t(_data.size()) - 1));
}
