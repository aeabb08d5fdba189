// Programs as text: whatever a program holds, what is printed parses back to
// the same text.
#include "ppcc/Emit/Emitter.h"
#include "ppcc/Import/Importer.h"

#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <random>

using namespace ppcc;

static std::string printed(const Program &program) {
  std::string text;
  llvm::raw_string_ostream out(text);
  printProgram(program, out);
  return text;
}

static std::optional<Program> parsed(const std::string &text,
                                     llvm::raw_ostream &errors = llvm::errs()) {
  SourceManager sources(llvm::vfs::getRealFileSystem());
  uint32_t file =
      sources.add("text", llvm::MemoryBuffer::getMemBufferCopy(text));
  DiagnosticEngine diags([&](const Diagnostic &diagnostic) {
    render(diagnostic, sources, errors);
  });
  ImportContext context{file, sources, diags, {}};
  auto program = importProgram(*findImporter("ir"), context);
  EXPECT_EQ(program.has_value(), !diags.hasErrors()) << text;
  return program;
}

/// Actions at random: they make no sense, but each is well formed.
static Program randomProgram(std::mt19937 &random) {
  auto below = [&](uint32_t end) {
    return static_cast<uint32_t>(random() % end);
  };
  Program program;
  program.editHead().name = below(2) ? "a \"name\"\\\n\t" : "";
  program.editHead().numRanks = 1 + below(3);
  program.editHead().hasBackward = below(2);
  for (const char *file : {"a.pp", "b c.pp"})
    program.editHead().files.push_back({file, false});
  for (uint32_t i = 1; i != 6; ++i)
    program.editHead().sites.push_back(
        {below(2), below(100), below(100), SiteId(below(i + 1))});
  uint32_t numPipes = 1 + below(2), first = below(3);
  for (uint32_t pipe = 0; pipe != numPipes; ++pipe) {
    Pipe row{"pipe " + std::to_string(pipe), first, 1 + below(4), {}, {}};
    for (uint32_t stage = 0; stage != 4; ++stage)
      row.rankOfStage.push_back(RankId(below(program.numRanks())));
    if (below(2))
      row.skipEdges = {{StageId(0), StageId(2)}, {StageId(1), StageId(3)}};
    if (below(2))
      row.gaps = {StageId(0), StageId(2)};
    if (below(2))
      row.slices = row.numMicrobatches;
    if (below(2))
      row.tensors = {{StageId(1),
                      StageId(2),
                      {{"x", ElementType::BF16, {2, Tensor::dynamic}},
                       {"y_1", ElementType::I64, {}}}}};
    first = row.endMicrobatch() + below(2);
    program.editHead().pipes.push_back(std::move(row));
  }
  if (below(2))
    program.editHead().costs.settings.push_back(
        {Cost::ScaleAction,
         KindId(kind::Forward),
         {},
         {},
         std::vector<int64_t>(program.totalMicrobatches(), 1'500'000'000)});
  for (uint32_t rank = 0; rank != program.numRanks(); ++rank) {
    program.editRows().beginRank();
    PhaseId phase;
    for (uint32_t i = 0, rows = below(30); i != rows; ++i) {
      Action action;
      action.pipe = PipeId(below(program.pipes().size()));
      const Pipe &pipe = program.pipes()[action.pipe.value];
      action.kind = KindId(below(program.kinds().size()));
      action.stage = StageId(below(4));
      action.microbatch = pipe.firstMicrobatch + below(pipe.numMicrobatches);
      if (!program.kinds()[action.kind].isCompute())
        action.peer = StageId(below(4));
      action.joined = i != 0 && below(4) == 0;
      if (!action.joined && below(3) == 0)
        phase = program.editHead().phase(below(2) ? "warm up" : "");
      action.phase = phase;
      action.site = SiteId(below(program.sites().size()));
      program.editRows().append(action);
    }
  }
  return program;
}

TEST(ProgramText, printsWhatItParses) {
  std::mt19937 random(1);
  for (int i = 0; i != 300; ++i) {
    Program program = randomProgram(random);
    std::string text = printed(program);
    auto again = parsed(text);
    ASSERT_TRUE(again) << text;
    ASSERT_EQ(printed(*again), text);
    ASSERT_EQ(again->size(), program.size());
    for (uint32_t row = 0; row != program.size(); ++row) {
      Action before = program[ActionId(row)], after = (*again)[ActionId(row)];
      ASSERT_EQ(cell(program, before), cell(*again, after));
      ASSERT_EQ(before.pipe, after.pipe);
      ASSERT_EQ(before.joined, after.joined);
      ASSERT_EQ(program.phases()[before.phase.value],
                again->phases()[after.phase.value]);
      ASSERT_EQ(program.rankOf(ActionId(row)), again->rankOf(ActionId(row)));
    }
  }
}

/// Cut and altered texts are read to an end, whatever they hold.
TEST(ProgramText, survivesDamage) {
  std::mt19937 random(2);
  const char alphabet[] = "0129FBIW_@<>(){};\"\\/. \nprogamskeu\x80\xff\0";
  unsigned refused = 0;
  for (int i = 0; i != 2000; ++i) {
    std::string text = printed(randomProgram(random));
    for (int damage = 0; damage != 3; ++damage)
      text[random() % text.size()] =
          alphabet[random() % (sizeof(alphabet) - 1)];
    if (random() % 4 == 0)
      text.resize(random() % text.size());
    auto program = parsed(text, llvm::nulls());
    if (program)
      ASSERT_TRUE(parsed(printed(*program))) << text;
    else
      ++refused;
  }
  EXPECT_GT(refused, 500u);
}
