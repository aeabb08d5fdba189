// The pass manager: what runs, what is forgotten, who is blamed.
#include "ppcc/Compiler/CommPolicy.h"
#include "ppcc/Pass/PassRegistry.h"

#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

using namespace ppcc;

namespace {

/// Counts how often it is made.
struct RowCount {
  explicit RowCount(const Program &program) : rows(program.size()) { ++made; }
  size_t rows;
  static inline unsigned made = 0;
};

std::vector<size_t> seen;

void askForRows(const Program &program, PassContext &context) {
  seen.push_back(
      program.derived.get("", [&] { return RowCount(program); }).rows);
}

/// Runs F of microbatch 0 once more.
PassResult repeatForward(Program &program, PassContext &context) {
  Action action = program[ActionId(0)];
  program.editRows().append(action);
  return PassResult::Changed;
}

class PassTest : public testing::Test {
protected:
  PassTest()
      : sources(llvm::vfs::getRealFileSystem()),
        diags([&](const Diagnostic &diagnostic) {
          codes.push_back(diagnostic.info().code.str());
        }),
        context(sources, diags), registry(makePassRegistry()) {
    program.editHead().numRanks = 1;
    program.editHead().pipes.push_back({"main", 0, 1, {RankId(0)}, {}});
    program.editRows().beginRank();
    Action action;
    program.editRows().append(action);
    action.kind = KindId(kind::Backward);
    program.editRows().append(action);
    registry.add("ask-for-rows", PassKind::Check, "", checkPass(askForRows));
    registry.add("repeat-forward", PassKind::Rewrite, "", repeatForward);
    RowCount::made = 0;
    seen.clear();
  }

  bool run(llvm::StringRef passes,
           const Instrumentation &instrumentation = {}) {
    return runPipeline(*parsePipeline(passes, registry, sources, diags),
                       program, context, instrumentation);
  }

  SourceManager sources;
  std::vector<std::string> codes;
  DiagnosticEngine diags;
  PassContext context;
  PassRegistry registry;
  Program program;
};

TEST_F(PassTest, analysesLiveUntilTheProgramChanges) {
  EXPECT_TRUE(run("ask-for-rows,ask-for-rows,repeat-forward,ask-for-rows"));
  EXPECT_EQ(seen, (std::vector<size_t>{2, 2, 3}));
  EXPECT_EQ(RowCount::made, 2u);
}

TEST_F(PassTest, verifyEachBlamesThePassThatBrokeTheProgram) {
  Pipeline verifier = *parsePipeline("verify", registry, sources, diags);
  Instrumentation instrumentation;
  instrumentation.verifyEach = &verifier;
  EXPECT_FALSE(
      run("ask-for-rows,repeat-forward,repeat-forward", instrumentation));
  EXPECT_EQ(codes, (std::vector<std::string>{"E0702", "E0806"}));
  EXPECT_EQ(program.size(), 3u) << "nothing changes the program after an error";
}

TEST_F(PassTest, earlierErrorsAreNotThePipelines) {
  EXPECT_FALSE(parsePipeline("nothing", registry, sources, diags));
  EXPECT_TRUE(run("verify"));
}

TEST_F(PassTest, anEmptyPipelineDoesNothing) {
  EXPECT_TRUE(run("  "));
  EXPECT_TRUE(codes.empty());
}

} // namespace
