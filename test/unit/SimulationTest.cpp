// Simulations against a relaxation of all rules, on every transport.
#include "RandomProgram.h"
#include "Rows.h"

#include "ppcc/Analysis/Makespan.h"
#include "ppcc/Analysis/Simulation.h"
#include "ppcc/Transforms/InjectComm.h"

#include <gtest/gtest.h>

using namespace ppcc;

namespace {

Program injected(const Program &program, llvm::StringRef order) {
  SourceManager sources(llvm::vfs::getRealFileSystem());
  DiagnosticEngine diags(
      [](const Diagnostic &found) { ADD_FAILURE() << found.message; });
  return *injectComm(program, ProgramIndex(program), *findCommOrder(order),
                     diags, sources);
}

TEST(Simulation, SameAsMakespan) {
  for (unsigned seed = 0; seed != 300; ++seed) {
    SCOPED_TRACE(seed);
    Program compute = RandomProgram(seed, 0).program;
    std::vector<Time> times;
    auto bound =
        dataBound(compute, ProgramIndex(compute), Durations(compute), &times);
    auto alone = simulate(compute, ProgramIndex(compute), Durations(compute));
    ASSERT_TRUE(alone);
    EXPECT_EQ(alone->makespan, bound);
    EXPECT_EQ(alone->starts, times);
    for (llvm::StringRef order : {"ready-time", "sweep", "late"}) {
      Program program = injected(compute, order);
      ProgramIndex index(program);
      Durations durations(program);
      auto makespan = streamMakespan(program, index, durations, &times);
      auto run = simulate(program, index, MessageIndex(program, index),
                          durations, *findTransport("stream"));
      ASSERT_EQ(bool(run), bool(makespan));
      if (run) {
        EXPECT_EQ(run->ends, times);
      }
    }
  }
}

} // namespace
