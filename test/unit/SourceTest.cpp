// Places in files, and back.
#include "ppcc/Basic/Source.h"

#include "llvm/Support/VirtualFileSystem.h"

#include <gtest/gtest.h>

using namespace ppcc;
using llvm::StringRef;

namespace {

struct Files : testing::Test {
  llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> fs =
      llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  SourceManager sources{fs};

  void write(StringRef name, StringRef text) {
    fs->addFile(name, 0, llvm::MemoryBuffer::getMemBufferCopy(text, name));
  }
  uint32_t add(StringRef name, StringRef text) {
    return sources.add(name, llvm::MemoryBuffer::getMemBufferCopy(text, name));
  }
  std::string where(SourceLoc at) {
    Position p = sources.position(at);
    return p.file.str() + ":" + std::to_string(p.line) + ":" +
           std::to_string(p.column);
  }
};

TEST_F(Files, everyByteHasItsPlace) {
  uint32_t a = add("a", "one\n\nthree");
  uint32_t b = add("b", "x\n");
  EXPECT_EQ(where(sources.loc(a, 0)), "a:1:1");
  EXPECT_EQ(where(sources.loc(a, 3)), "a:1:4"); // The end of the line.
  EXPECT_EQ(where(sources.loc(a, 4)), "a:2:1");
  EXPECT_EQ(where(sources.loc(a, 5)), "a:3:1");
  EXPECT_EQ(where(sources.loc(a, 10)), "a:3:6"); // The end of the file.
  EXPECT_EQ(where(sources.loc(b, 0)), "b:1:1");
  EXPECT_EQ(where(sources.loc(b, 2)), "b:2:1");
}

TEST_F(Files, linesEndInEitherWay) {
  uint32_t a = add("a", "one\r\ntwo\n\nlast");
  EXPECT_EQ(sources.lineText(sources.loc(a, 1)), "one");
  EXPECT_EQ(sources.lineText(sources.loc(a, 4)), "one");
  EXPECT_EQ(sources.lineText(sources.loc(a, 5)), "two");
  EXPECT_EQ(sources.lineText(sources.loc(a, 9)), "");
  EXPECT_EQ(sources.lineText(sources.loc(a, 14)), "last");
  EXPECT_EQ(where(sources.loc(a, 5)), "a:2:1");
}

TEST_F(Files, columnsBeginBehindTheMarkOfUtf8) {
  uint32_t a = add("a", "\uFEFFone\ntwo");
  EXPECT_EQ(where(sources.loc(a, 0)), "a:1:1");
  EXPECT_EQ(where(sources.loc(a, 3)), "a:1:1");
  EXPECT_EQ(where(sources.loc(a, 5)), "a:1:3");
  EXPECT_EQ(where(sources.loc(a, 7)), "a:2:1");
  EXPECT_EQ(sources.lineText(sources.loc(a, 0)), "one");
  EXPECT_EQ(sources.find("a", 1, 3), sources.loc(a, 5));
}

TEST_F(Files, emptyFiles) {
  uint32_t a = add("a", ""), b = add("b", ""), c = add("c", "x");
  EXPECT_EQ(where(sources.loc(a, 0)), "a:1:1");
  EXPECT_EQ(where(sources.loc(b, 0)), "b:1:1");
  EXPECT_EQ(where(sources.loc(c, 0)), "c:1:1");
  EXPECT_EQ(sources.lineText(sources.loc(b, 0)), "");
}

TEST_F(Files, findIsTheInverseOfPosition) {
  uint32_t a = add("a", "one\n\nthree\n");
  add("b", "other");
  for (size_t offset = 0; offset <= sources.text(a).size(); ++offset) {
    Position p = sources.position(sources.loc(a, offset));
    EXPECT_EQ(sources.find("a", p.line, p.column), sources.loc(a, offset));
  }
}

TEST_F(Files, findKnowsWhatWasReadAndRefusesPlacesThatAreNot) {
  write("/late", "ab\nc");
  EXPECT_FALSE(sources.find("/late", 2, 1).valid());
  ASSERT_TRUE(bool(sources.open("/late")));
  EXPECT_EQ(where(sources.find("/late", 2, 1)), "/late:2:1");
  EXPECT_FALSE(sources.find("/late", 0, 1).valid());
  EXPECT_FALSE(sources.find("/late", 1, 0).valid());
  EXPECT_FALSE(sources.find("/late", 1, 4).valid());
  EXPECT_FALSE(sources.find("/late", 3, 1).valid());
  EXPECT_FALSE(sources.find("/late", UINT32_MAX, UINT32_MAX).valid());
  EXPECT_FALSE(sources.find("/late", 2, UINT32_MAX).valid());
  EXPECT_FALSE(sources.find("/none", 1, 1).valid());
}

TEST_F(Files, aFileIsReadOnce) {
  write("/a", "text");
  auto first = sources.open("/a"), second = sources.open("/a");
  ASSERT_TRUE(bool(first) && bool(second));
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(sources.lookup("/a"), *first);
  EXPECT_EQ(sources.lookup("/b"), std::nullopt);
}

TEST_F(Files, errorsOfOpening) {
  write("/folder/a", "0123456789");
  sources.maxBytes = 9;
  auto error = [&](StringRef path) {
    auto file = sources.open(path);
    return file ? "" : llvm::toString(file.takeError());
  };
  EXPECT_EQ(error("/none"), "No such file or directory");
  EXPECT_EQ(error("/folder"), "Is a directory");
  EXPECT_EQ(error("/folder/a"),
            "it is larger than 9 bytes (--max-source-bytes)");
  sources.maxBytes = 10;
  EXPECT_EQ(error("/folder/a"), "");
}

} // namespace
