// Decimals, tables, and the progress line.
#include "ppcc/Support/Decimal.h"
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
