// Diagnostics as they are counted and as they are written.
#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/Basic/Diagnostics/Files.h"
#include "ppcc/Basic/Diagnostics/Instance.h"
#include "ppcc/Basic/Diagnostics/Sema.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/VirtualFileSystem.h"

#include <gtest/gtest.h>

#include <set>

using namespace ppcc;
using llvm::StringRef;

namespace {

/// Counts how often it is written.
struct Written {
  unsigned &times;
};

} // namespace

template <> struct fmt::formatter<Written> : fmt::formatter<std::string> {
  auto format(const Written &written, fmt::format_context &context) const {
    ++written.times;
    return context.out();
  }
};

namespace {

struct Rendered : testing::Test {
  SourceManager sources{llvm::vfs::getRealFileSystem()};
  std::string text;
  llvm::raw_string_ostream out{text};
  DiagnosticEngine diags{
      [this](const Diagnostic &d) { render(d, sources, out); }};

  SourceRange range(StringRef name, StringRef source, size_t begin,
                    size_t end) {
    uint32_t file =
        sources.add(name, llvm::MemoryBuffer::getMemBufferCopy(source, name));
    return {sources.loc(file, begin), sources.loc(file, end)};
  }
  /// The line of text and the line of the caret of a diagnostic at these bytes.
  std::string snippet(StringRef source, size_t begin, size_t end) {
    text.clear();
    diags.report<diag::UnknownName>(range("f", source, begin, end), "n", "");
    auto lines = llvm::split(text, '\n');
    auto line = std::next(lines.begin());
    return (*line + "\n" + *std::next(line)).str();
  }
};

TEST_F(Rendered, placesNotesAndHint) {
  SourceRange at = range("a.pp", "one two\nthree\n", 4, 7);
  SourceRange other = range("b.pp", "here\n", 0, 4);
  diags.report<diag::UnknownName>(at, "two", "; did you mean `too`?")
      .note(other, "see {}", 1)
      .note({}, "and so on");
  EXPECT_EQ(text,
            "a.pp:1:5: error: unknown name `two`; did you mean `too`? [E0301]\n"
            "  1 | one two\n"
            "    |     ^~~\n"
            "b.pp:1:1: note: see 1\n"
            "  1 | here\n"
            "    | ^~~~\n"
            "note: and so on\n"
            "note: names come from parameters, `let`, `for`, `pipe` and `fn`, "
            "each declared before its use\n");
}

TEST_F(Rendered, placesInWords) {
  diags.report<diag::UnknownParameter>(Location(std::string("-D x")), "s", "x",
                                       "");
  diags.report<diag::CannotRead>(Location(), "f", "gone");
  EXPECT_TRUE(StringRef(text).starts_with(
      "-D x: error: `s` has no parameter `x` [E0401]\nnote: "));
  EXPECT_NE(text.find("\nppcc: error: cannot read `f`: gone [E0101]\n"),
            std::string::npos);
}

TEST_F(Rendered, tabsStayUnderTabs) {
  EXPECT_EQ(snippet("\ta\tbc;", 3, 5), "  1 | \ta\tbc;\n    | \t \t^~");
}

TEST_F(Rendered, lettersOfSeveralBytesAreOneColumn) {
  EXPECT_EQ(snippet("\xC3\xA4\xE2\x82\xAC x", 6, 7),
            "  1 | \xC3\xA4\xE2\x82\xAC x\n    |    ^");
  EXPECT_EQ(snippet("a \xC3\xA4\xC3\xA4 b", 2, 6),
            "  1 | a \xC3\xA4\xC3\xA4 b\n    |   ^~");
}

TEST_F(Rendered, endsOfLinesAndFiles) {
  EXPECT_EQ(snippet("ab\r\ncd", 2, 3), "  1 | ab\n    |   ^");
  EXPECT_EQ(snippet("ab\n", 3, 3), "  2 | \n    | ^");
  EXPECT_EQ(snippet("", 0, 0), "  1 | \n    | ^");
  // A range over several lines is shown on its first.
  EXPECT_EQ(snippet("abc\ndef", 1, 6), "  1 | abc\n    |  ^~");
}

TEST_F(Rendered, whatTerminalsWouldObeyIsEscaped) {
  EXPECT_EQ(snippet("a\033[1mb", 5, 6), "  1 | a\\x1B[1mb\n    |         ^");
  // The escape is underlined where it is to blame.
  EXPECT_EQ(snippet("a\u202Eb", 1, 4), "  1 | a\\u{202E}b\n"
                                       "    |  ^~~~~~~~");
  // A line ends where editors say so; what is no UTF-8 is shown byte by byte.
  EXPECT_EQ(snippet("a\rb\xFF!", 4, 5), "  1 | a\\rb\\xFF!\n"
                                        "    |         ^");
  EXPECT_EQ(snippet("\x80\x80\x80\x80\x80", 3, 4),
            "  1 | \\x80\\x80\\x80\\x80\\x80\n    |             ^~~~");
}

TEST_F(Rendered, wideLettersAreTwoColumns) {
  EXPECT_EQ(snippet("\u6F22 x \u6F22", 4, 5),
            "  1 | \u6F22 x \u6F22\n    |    ^");
  EXPECT_EQ(snippet("\u6F22", 0, 3), "  1 | \u6F22\n    | ^~");
}

TEST_F(Rendered, theMarkOfUtf8IsNoPartOfALine) {
  EXPECT_EQ(snippet("\uFEFFone", 3, 6), "  1 | one\n    | ^~~");
  EXPECT_EQ(snippet("\uFEFFone", 0, 0), "  1 | one\n    | ^");
}

TEST_F(Rendered, noNameForgesADiagnostic) {
  SourceRange at = range("a\nb.pp: error: no", "x", 0, 1);
  diags.report<diag::UnknownName>(at, "\nf.pp:1:1: error: forged", "")
      .note(Location("-D \x07"), "\u2066");
  EXPECT_TRUE(StringRef(text).starts_with(
      "a\\nb.pp: error: no:1:1: error: unknown name "
      "`\\nf.pp:1:1: error: forged` [E0301]\n"));
  EXPECT_NE(text.find("\n-D \\x07: note: \\u{2066}\n"), std::string::npos);
}

TEST(DiagnosticEngine, writesNothingThatIsNotShown) {
  unsigned times = 0;
  DiagnosticEngine diags([](const Diagnostic &) {});
  diags.maxErrors = 2;
  for (unsigned i = 0; i != 5; ++i)
    diags.report<diag::RequireFailed>({}, Written{times})
        .note({}, "{}", Written{times});
  EXPECT_EQ(times, 4u);
}

TEST_F(Rendered, longLinesAreCutAroundThePlace) {
  std::string line = std::string(500, 'a') + "X" + std::string(500, 'b');
  std::string shown = snippet(line, 500, 501);
  auto [source, caret] = StringRef(shown).split('\n');
  EXPECT_EQ(source, "  1 | ..." + std::string(60, 'a') + "X" +
                        std::string(59, 'b') + "...");
  EXPECT_EQ(source.find('X'), caret.find('^'));
  // It is cut in front from column 91 on, and behind where more is left.
  std::string front(91, 'a');
  EXPECT_EQ(snippet(front, 90, 91),
            "  1 | " + front + "\n    | " + std::string(90, ' ') + "^");
  EXPECT_TRUE(StringRef(snippet(front + "a", 91, 92)).contains("| ...a"));
  EXPECT_FALSE(StringRef(snippet(std::string(120, 'a'), 0, 1)).contains("..."));
  EXPECT_TRUE(StringRef(snippet(std::string(121, 'a'), 0, 1)).contains("a..."));
  // A long range does not lead out of the window.
  auto [cut, underline] =
      StringRef(shown = snippet(line, 490, 1000)).split('\n');
  EXPECT_EQ(underline.size(), cut.size() - 3);
  // Nor does a cut part a letter.
  std::string wide;
  for (int i = 0; i != 400; ++i)
    wide += "\xC3\xA4";
  for (size_t at = 300; at != 304; ++at)
    EXPECT_TRUE(StringRef(snippet("x" + wide, at, at + 1))
                    .contains("...\xC3\xA4\xC3\xA4"));
}

TEST_F(Rendered, color) {
  SourceRange at = range("a.pp", "x", 0, 1);
  DiagnosticEngine colored([&](const Diagnostic &d) {
    out.enable_colors(true);
    render(d, sources, out, {true});
  });
  colored.report<diag::UnknownName>(at, "x", "");
  EXPECT_NE(text.find("\033[0;1;31merror: \033[0munknown name `x`"),
            std::string::npos);
}

TEST(DiagnosticEngine, countsEverythingAndShowsUpToTheLimit) {
  std::vector<std::string> codes;
  DiagnosticEngine diags(
      [&](const Diagnostic &d) { codes.push_back(d.info().code.str()); });
  diags.maxErrors = 2;
  EXPECT_FALSE(diags.hasErrors());
  for (unsigned i = 1; i != 5; ++i) {
    diags.report<diag::RequireFailed>({}, "no");
    EXPECT_EQ(diags.errorCount(), i);
    EXPECT_EQ(diags.saturated(), i > 2);
  }
  EXPECT_EQ(codes, (std::vector<std::string>{"E0404", "E0404", "E0105"}));
}

TEST(DiagnosticTable, codesAndNamesAreDistinct) {
  std::set<StringRef> codes, names;
  for (const DiagInfo &info : diagTable()) {
    EXPECT_EQ(&info, &diagInfo(info.id));
    EXPECT_TRUE(codes.insert(info.code).second) << info.code.str();
    EXPECT_TRUE(names.insert(info.name).second) << info.name.str();
    EXPECT_EQ(info.code.size(), 5u);
    EXPECT_FALSE(info.hint.empty() || info.hint.ends_with("."));
    EXPECT_FALSE(info.text.ends_with("."));
  }
}

} // namespace
