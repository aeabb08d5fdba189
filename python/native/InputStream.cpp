// The input stream of ANTLR 4.9. That of its static library is made for
// programs: it has a thread-local at a fixed place.
#include "ANTLRInputStream.h"
#include "misc/Interval.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ConvertUTF.h"

using namespace antlr4;

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
