// The style of schedules: nothing is lost, and what is in it stays.
#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Editor/Editor.h"

#include <gtest/gtest.h>

#include <random>

using namespace ppcc;
using namespace ppcc::editor;

namespace {

std::vector<std::string> wordsOf(llvm::StringRef text) {
  std::vector<std::string> words;
  for (const Token &token : tokenize(text))
    words.push_back(token.text.str());
  return words;
}

void expectKept(const std::string &text) {
  std::string once = format(text);
  EXPECT_EQ(wordsOf(once), wordsOf(text)) << text;
  EXPECT_EQ(format(once), once) << text;
}

TEST(Format, LeavesTheLibraryAsItIs) {
  for (const LibraryFile &file : scheduleLibrary())
    EXPECT_EQ(format(file.text), file.text.str()) << file.name.str();
}

TEST(Format, KeepsTheTokensOfWhateverText) {
  std::mt19937 random(1);
  auto below = [&](size_t end) { return random() % end; };
  const llvm::StringRef spaces[] = {"", " ", "   ", "\n", "\n\n\n", "\t"};
  for (const LibraryFile &file : scheduleLibrary())
    for (int turn = 0; turn != 20; ++turn) {
      std::string text = file.text.str();
      for (int edit = 0; edit != 30; ++edit) {
        size_t at = below(text.size());
        if (below(2))
          text.insert(at, spaces[below(std::size(spaces))].str());
        else
          text.erase(at, below(3));
      }
      expectKept(text);
    }
}

TEST(Format, KeepsTheTokensOfAnyTokens) {
  std::mt19937 random(2);
  const llvm::StringRef pieces[] = {
      "{",  "}",    "(", ")", ";",  ",",     "-",  "?",      ":",         "..",
      "F",  "a",    "1", ".", "@",  "->",    "\n", "// b\n", "\"a { b\"", "\"",
      "if", "comm", " ", " ", "  ", "1.5e3", "=",  "==",     "é"};
  for (int turn = 0; turn != 5000; ++turn) {
    std::string text;
    for (size_t length = random() % 40; length != 0; --length)
      text += pieces[random() % std::size(pieces)];
    expectKept(text);
  }
}

} // namespace
