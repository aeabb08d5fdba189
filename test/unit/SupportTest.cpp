// Decimals, tables, and the progress line.
#include "ppcc/Support/Decimal.h"
#include "ppcc/Support/Printable.h"
#include "ppcc/Support/Progress.h"
#include "ppcc/Support/TextTable.h"

#include <gtest/gtest.h>

using namespace ppcc;

namespace {

constexpr decimal::Scale cents{2, 100'000};

TEST(Decimal, RoundsAnyNumberOfJson) {
  using Case = std::pair<const char *, std::optional<int64_t>>;
  for (auto [text, value] : {Case{"0", 0},
                             {"-0.0", 0},
                             {"1", 100},
                             {"-1.5", -150},
                             {"1.005", 101},
                             {"1.00499999", 100},
                             {"0.005", 1},
                             {"0.0049", 0},
                             {"-0.005", -1},
                             {"1e2", 10'000},
                             {"1E+3", 100'000},
                             {"0.001e3", 100},
                             {"12345e-4", 123},
                             {"5e-3", 1},
                             {"4e-3", 0},
                             {"5e-4", 0},
                             {"1e-999999999999999999999", 0},
                             {"0e999999999999999999999", 0},
                             {"1000", 100'000},
                             {"1000.004", 100'000},
                             {"1000.005", std::nullopt},
                             {"1e4", std::nullopt},
                             {"1e999999999999999999999", std::nullopt},
                             {"", std::nullopt},
                             {"-", std::nullopt},
                             {"1.", std::nullopt},
                             {".5", std::nullopt},
                             {"1e", std::nullopt},
                             {"1e+", std::nullopt},
                             {"1e+-2", std::nullopt},
                             {"1x", std::nullopt},
                             {"nan", std::nullopt}})
    EXPECT_EQ(decimal::round(text, cents), value) << text;
}

TEST(Decimal, ParsesStrictly) {
  EXPECT_EQ(decimal::parse("1.25", cents), 125);
  EXPECT_EQ(decimal::parse("007", cents), 700);
  for (const char *text : {"1.255", "-1", "1e2", "1001", "", "1.", " 1"})
    EXPECT_EQ(decimal::parse(text, cents), std::nullopt) << text;
}

TEST(Decimal, FormatsTheShortest) {
  using Case = std::pair<decimal::Sum, const char *>;
  for (auto [value, text] : {Case{0, "0"},
                             {100, "1"},
                             {150, "1.5"},
                             {-5, "-0.05"},
                             {-100, "-1"},
                             {100'000'01, "100000.01"}})
    EXPECT_EQ(decimal::format(value, 2), text);
  decimal::Sum large = decimal::Sum(INT64_MAX) * 1000 + 1;
  EXPECT_EQ(decimal::format(large, 3), "9223372036854775807.001");
  EXPECT_EQ(decimal::format(7, 0), "7");
}

std::string printed(const TextTable &table, TableStyle style) {
  std::string text;
  llvm::raw_string_ostream out(text);
  table.print(out, style);
  return text;
}

TEST(TextTable, HasThreeStyles) {
  TextTable table({"name", "size", "note"});
  table.add({"a", "1.5", "x, \"y\""});
  table.add({"long", "-10", ""});
  EXPECT_EQ(printed(table, TableStyle::Text), "name  size  note\n"
                                              "a      1.5  x, \"y\"\n"
                                              "long   -10\n");
  EXPECT_EQ(printed(table, TableStyle::Csv), "name,size,note\n"
                                             "a,1.5,\"x, \"\"y\"\"\"\n"
                                             "long,-10,\n");
  EXPECT_EQ(printed(table, TableStyle::Markdown), "| name | size | note   |\n"
                                                  "| ---- | ---: | ------ |\n"
                                                  "| a    |  1.5 | x, \"y\" |\n"
                                                  "| long |  -10 |        |\n");
}

TEST(TextTable, AlignsWhatIsShown) {
  TextTable table({"name", "n"});
  table.add({"\u6F22\x1B", "1"});
  table.add({"\u00E4", "2"});
  EXPECT_EQ(printed(table, TableStyle::Text), "name    n\n"
                                              "\u6F22\\x1B  1\n"
                                              "\u00E4       2\n");
}

TEST(Printable, EscapesWhatIsNotSeenAsItIs) {
  for (auto [text, shown] :
       std::initializer_list<std::pair<const char *, const char *>>{
           {"plain \\ \u00E4\u6F22\U0001F600",
            "plain \\ \u00E4\u6F22\U0001F600"},
           {"\n\r\t\x1B\x7F", "\\n\\r\\t\\x1B\\x7F"},
           {"\xC2\x85\xC2\x9B", "\\u{85}\\u{9B}"},
           {"\u061C\u200E\u200F\u2028\u202A\u202E\u2066\u2069\uFEFF",
            "\\u{61C}\\u{200E}\\u{200F}\\u{2028}\\u{202A}\\u{202E}\\u{2066}"
            "\\u{2069}\\u{FEFF}"},
           {"\U000E0001", "\\u{E0001}"},
           {"\x9B\xE2\x80", "\\x9B\\xE2\\x80"}}) {
    EXPECT_EQ(printable(text), shown);
    EXPECT_EQ(printable(shown), shown);
  }
  EXPECT_EQ(printable(llvm::StringRef("\0", 1)), "\\x00");
  EXPECT_EQ(printableJson("{\n\t\"\u00E4\u202E\x7F\U000E0001\"}"),
            "{\n\t\"\u00E4\\u202e\\u007f\\udb40\\udc01\"}");
}

TEST(Printable, EscapesAreReadBack) {
  for (std::string text :
       {"\n", "\r", "\t", "\x1B", "\x9B", "\u202E", "\U000E0001"}) {
    std::string escape = printable(text);
    llvm::StringRef rest = llvm::StringRef(escape).drop_front();
    EXPECT_EQ(takeEscape(rest), text);
    EXPECT_EQ(rest, "");
  }
  for (llvm::StringRef wrong : {"q", "x", "x1", "xg0", "u", "u{", "u{}", "u{g}",
                                "u{D800}", "u{110000}", "u{100000000}"})
    EXPECT_EQ(takeEscape(wrong), std::nullopt);
}

/// A stream that says that it is a terminal, or not.
class Screen final : public llvm::raw_ostream {
public:
  explicit Screen(bool displayed) : displayed(displayed) { SetUnbuffered(); }
  ~Screen() override { flush(); }
  bool is_displayed() const override { return displayed; }
  std::string text;

private:
  void write_impl(const char *begin, size_t size) override {
    text.append(begin, size);
  }
  uint64_t current_pos() const override { return text.size(); }
  bool displayed;
};

TEST(Progress, IsDrawnOnTerminalsAlone) {
  for (bool displayed : {true, false}) {
    Screen screen(displayed);
    {
      Progress progress(screen, 2);
      progress.next("first");
      progress.next("second");
    }
    EXPECT_EQ(screen.text,
              displayed
                  ? "\r\x1b[K[                        ] 0/2 first"
                    "\r\x1b[K[############            ] 1/2 second\r\x1b[K"
                  : "");
  }
}

} // namespace
