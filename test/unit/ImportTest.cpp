// Whatever the bytes of a file are, a reader gives a program or a report.
#include "Rows.h"

#include "ppcc/Compiler/Compiler.h"
#include "ppcc/Import/Importer.h"
#include "ppcc/Pass/PassRegistry.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

#include <random>

using namespace ppcc;
using llvm::StringRef;

namespace {

/// A small program with a group, messages and a split backward.
const CellRows messages = {
    "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0I1 0W1",
    "1RECV_F0 1F0 1RECV_F1 (1F1;1B0)OVERLAP_F_B 1SEND_B0 1B1 "
    "1SEND_B1"};

struct Imported {
  std::optional<Program> program;
  std::string codes; ///< Of the errors.
};

Imported import(StringRef format, StringRef text, ImportOptions options = {}) {
  Imported result;
  SourceManager sources(new llvm::vfs::InMemoryFileSystem);
  uint32_t file =
      sources.add("program", llvm::MemoryBuffer::getMemBufferCopy(text));
  DiagnosticEngine diags([&](const Diagnostic &found) {
    // Rendering reads the places.
    std::string rendered;
    llvm::raw_string_ostream out(rendered);
    render(found, sources, out);
    if (found.info().severity == Severity::Error)
      result.codes += found.info().code.str() + " ";
  });
  ImportContext context{file, sources, diags, options};
  result.program = importProgram(*findImporter(format), context);
  return result;
}

/// The text of a program in a format that can be read.
std::string textOf(StringRef format, const CellRows &rows) {
  auto program = import("actions", actionsText(rows)).program;
  EXPECT_TRUE(program);
  return program ? emitted(format, *program) : "";
}

std::string mutated(std::string text, std::mt19937 &random) {
  static constexpr StringRef pieces[] = {
      "0",      "9",         "-",    "99999999999999999999",
      "[",      "]",         "{",    "}",
      "(",      ")",         ";",    ",",
      ":",      "\"",        "\\",   "\n",
      "\r",     "F",         "B",    "SEND_F",
      "RECV_B", ">",         "<",    "//",
      "rank",   " ",         "\xFF", "\xC3\xA9",
      "null",   "4294967295"};
  for (unsigned edits = 1 + random() % 4; edits != 0; --edits) {
    size_t at = random() % (text.size() + 1);
    size_t length = std::min<size_t>(random() % 12, text.size() - at);
    switch (random() % 4) {
    case 0:
      text.erase(at, length);
      break;
    case 1:
      text.insert(at, pieces[random() % std::size(pieces)]);
      break;
    case 2:
      text.replace(at, length, pieces[random() % std::size(pieces)]);
      break;
    case 3: // Part of the text again, elsewhere.
      text.insert(at, text.substr(random() % (text.size() + 1), random() % 60));
      break;
    }
  }
  return text;
}

/// Runs every check over a copy of the program, whatever they say.
void checkProgram(Program program) {
  Session session(new llvm::vfs::InMemoryFileSystem);
  CommPolicy comm;
  comm.transports = {*findTransport("buffered"), *findTransport("rendezvous"),
                     *findTransport("stream")};
  runPasses({"verify,inject-comm,verify,verify-matching,verify-transport"},
            session, program, comm);
  runPasses({"verify-matching,verify-transport"}, session, program);
}

class ImportMutation : public testing::TestWithParam<const char *> {};

TEST_P(ImportMutation, GivesAProgramOrAReport) {
  std::mt19937 random(1);
  std::string whole = textOf(GetParam(), messages);
  unsigned read = 0, refused = 0;
  for (unsigned i = 0; i != 4000; ++i) {
    std::string text = mutated(whole, random);
    Imported found = import(GetParam(), text);
    ASSERT_NE(found.program.has_value(), !found.codes.empty()) << text;
    (found.program ? read : refused) += 1;
    if (!found.program)
      continue;
    // What was read is whole enough to be judged and printed.
    checkProgram(*found.program);
    ASSERT_EQ(found.program->ranksBegun(), found.program->numRanks()) << text;
    ASSERT_FALSE(emitted("actions", *found.program).empty()) << text;
    ASSERT_FALSE(emitted("ir", *found.program).empty()) << text;
    if (StringRef(GetParam()) == "json") {
      auto parsed = llvm::json::parse(text);
      ASSERT_TRUE(bool(parsed)) << text;
    }
  }
  EXPECT_GT(read, 0u);
  EXPECT_GT(refused, 0u);
}

INSTANTIATE_TEST_SUITE_P(Formats, ImportMutation,
                         testing::Values("torch-csv", "torch-csv-compute",
                                         "actions", "json", "ir"),
                         [](const auto &info) {
                           std::string name = info.param;
                           llvm::erase(name, '-');
                           return name;
                         });

TEST(Import, NoPartOfAFileIsTakenForTheWhole) {
  std::string whole = textOf("json", messages);
  for (size_t length = 0; length + 2 < whole.size(); ++length)
    ASSERT_FALSE(import("json", StringRef(whole).take_front(length)).program)
        << length;
  EXPECT_TRUE(import("json", whole).program);
}

TEST(Import, DepthAndNumbersAreBounded) {
  std::string deep(1 << 20, '[');
  EXPECT_EQ(import("json", deep).codes, "E0670 ");
  EXPECT_EQ(import("json", "{\"x\": " + deep).codes, "E0670 ");
  // Numbers in a short text ask for no memory by their size.
  EXPECT_TRUE(import("csv", "0F0,0F4294967293\n").program);
  EXPECT_EQ(import("csv", "0F0,0F4294967294\n").codes, "E0652 ");
  EXPECT_EQ(import("csv", "0F0,65533F0\n").codes, "E0661 ");
  EXPECT_EQ(import("actions", "rank 0: 0F0\nrank 1: 0F4294967293\n").codes,
            "E0660 ");
}

TEST(Import, FormatsAreToldByTheirText) {
  for (const char *format : {"csv", "json", "actions", "ir"}) {
    StringRef emitter = StringRef(format) == "csv" ? "torch-csv" : format;
    std::string text = textOf(emitter, messages);
    EXPECT_EQ(importerOfText(text), findImporter(format)) << format;
    EXPECT_EQ(importerOfText("// A comment.\n\n" + text), findImporter(format));
    EXPECT_EQ(importerOfName("x." + std::string(format)), findImporter(format));
  }
  for (const char *schedule :
       {"", "schedule x() {}", "import \"x.pp\";", "// rank 0: 0F0",
        "programs(", "ranks 3", "fn f(x) = x;"})
    EXPECT_EQ(importerOfText(schedule), nullptr) << schedule;
  EXPECT_EQ(importerOfName("csv"), nullptr);
  EXPECT_EQ(importerOfName("x.pp"), nullptr);
}

/// Whether some cut of the microbatches into ranges gives each stage one rank
/// in each range, found by trying every set of cuts.
bool hasPipes(const std::vector<std::vector<uint32_t>> &rankOf) {
  unsigned microbatches = rankOf.size(), stages = rankOf.front().size();
  auto load = [&](unsigned microbatch) {
    std::vector<uint32_t> ranks = rankOf[microbatch];
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  };
  for (unsigned cuts = 0; cuts != 1u << (microbatches - 1); ++cuts) {
    bool good = true;
    for (unsigned m = 1; m != microbatches; ++m)
      for (unsigned s = 0; s != stages; ++s)
        good &= (cuts >> (m - 1) & 1) || rankOf[m][s] == rankOf[m - 1][s];
    for (unsigned m = 1; m != microbatches; ++m)
      good &= load(m) == load(0);
    if (good)
      return true;
  }
  return false;
}

TEST(Import, PipesAreFoundWhereThereAreSome) {
  std::mt19937 random(2);
  unsigned found = 0, refused = 0;
  for (unsigned i = 0; i != 2000; ++i) {
    unsigned ranks = 2, stages = 1 + random() % 3,
             microbatches = 1 + random() % 4;
    std::vector<std::vector<uint32_t>> rankOf(microbatches);
    CellRows rows(ranks);
    for (unsigned m = 0; m != microbatches; ++m)
      for (unsigned s = 0; s != stages; ++s) {
        bool same = m != 0 && random() % 2;
        rankOf[m].push_back(same ? rankOf[m - 1][s] : random() % ranks);
        rows[rankOf[m].back()] += fmt::format(" {}F{}", s, m);
      }
    auto program = import("actions", actionsText(rows)).program;
    ASSERT_EQ(program.has_value(), hasPipes(rankOf)) << actionsText(rows);
    (program ? found : refused) += 1;
    if (!program)
      continue;
    for (uint32_t row = 0; row != program->size(); ++row) {
      Action action = (*program)[ActionId(row)];
      ASSERT_EQ(program->rankOfStage(action.pipe, action.stage),
                program->rankOf(ActionId(row)));
      ASSERT_TRUE(
          program->pipes()[action.pipe.value].hasMicrobatch(action.microbatch));
    }
  }
  EXPECT_GT(found, 100u);
  EXPECT_GT(refused, 100u);
}

} // namespace
