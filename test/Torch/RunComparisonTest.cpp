// What `pprun --check` finds wrong, and that it finds it.
#include "RunComparison.h"

#include <gmock/gmock.h>

#include <limits>
#include <unistd.h>

using namespace ppcc;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

/// One stage, two microbatches that are alive together.
struct Fixture {
  rt::Kind kinds[2] = {{"F", rt::KindClass::Compute, rt::slot::Output, 0},
                       {"B", rt::KindClass::Compute,
                        rt::slot::InputGrad | rt::slot::WeightGrad,
                        rt::slot::Output}};
  rt::Row rows[4] = {row(0, 0), row(0, 1), row(1, 0), row(1, 1)};
  rt::Segment segment{0, 4, 1, 0};
  uint32_t rankOfStage = 0;
  rt::Pipe pipe{"main", 0, 2, {&rankOfStage, 1}, {}};
  rt::RankProgram list;
  rt::Program program{};
  RunResult pipelined, reference;

  Fixture() {
    list.rows = {rows, 4};
    list.segments = {&segment, 1};
    program.numRanks = 1;
    program.kinds = {kinds, 2};
    program.pipes = {&pipe, 1};
    program.ranks = {&list, 1};
    for (RunResult *result : {&pipelined, &reference}) {
      result->add(Gradient{"a", {1, 2}});
      result->add(StepLosses{0, {0, 1}, {3, 4}});
    }
    pipelined.add(Peak{0, 2, 0});
  }
  static rt::Row row(uint8_t kind, uint32_t microbatch) {
    return {kind, 0, 0, microbatch, rt::Row::noPeer, 0, 0};
  }
  std::vector<std::string> wrong() const {
    return compare(program, pipelined, reference, 1).wrong;
  }
};

TEST(RunComparison, AcceptsEqualRuns) {
  Fixture given;
  given.pipelined.gradients[0].values[0] += 1e-13;
  EXPECT_THAT(given.wrong(), IsEmpty());
  EXPECT_NEAR(
      compare(given.program, given.pipelined, given.reference, 1).gradients,
      1e-13, 1e-15);
}

TEST(RunComparison, FindsOtherGradients) {
  Fixture given;
  given.pipelined.gradients[0].values[1] += 1e-11;
  EXPECT_THAT(given.wrong(),
              ElementsAre("the gradient of `a` differs by 1e-11"));
  given.pipelined.gradients[0].values[1] =
      std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(given.wrong(), ElementsAre("the gradient of `a` differs by inf"));
  given.pipelined.gradients[0].values = {1};
  EXPECT_THAT(given.wrong(), ElementsAre("the gradient of `a` has 1 numbers, "
                                         "the reference 2"));
}

TEST(RunComparison, FindsWeightsThatAreMissing) {
  Fixture given;
  given.pipelined.gradients[0].name = "b";
  EXPECT_THAT(given.wrong(), ElementsAre("the reference has no weight `b`",
                                         "no rank has the weight `a`"));
  given.pipelined.gradients.clear();
  given.reference.gradients.clear();
  EXPECT_THAT(given.wrong(), ElementsAre("there are no gradients"));
}

TEST(RunComparison, FindsOtherReplicas) {
  Fixture given;
  given.pipelined.add(Gradient{"a", {1, 3}});
  EXPECT_THAT(given.wrong(), ElementsAre("the gradient of `a` differs by 1"));
}

TEST(RunComparison, FindsOtherLosses) {
  Fixture given;
  given.pipelined.losses[0].values[0] += 1;
  EXPECT_THAT(given.wrong(), ElementsAre("the losses differ by 0.5"));
  given.pipelined.losses[0].microbatches[1] = 0;
  EXPECT_THAT(given.wrong(), ElementsAre("losses of step 1 are missing"));
}

TEST(RunComparison, FindsOtherPeaks) {
  Fixture given;
  given.pipelined.peaks[0].activations = 1;
  EXPECT_THAT(given.wrong(),
              ElementsAre("rank 0 held 1 activations, but its list holds 2"));
}

TEST(LossCurve, MeansDoNotDependOnWhoTellsWhat) {
  LossCurve whole(3), parts(3);
  whole.add({0, {0, 1, 2}, {0.1, 0.2, 0.3}});
  parts.add({1, {2}, {7}});
  parts.add({0, {2}, {0.3}});
  parts.add({0, {1, 0}, {0.2, 0.1}});
  EXPECT_EQ(whole.next(), parts.next());
  EXPECT_EQ(parts.next(), std::nullopt);
  EXPECT_EQ(parts.numTaken(), 1u);
}

TEST(Messages, ComeInPieces) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Reporter reporter(ends[1]);
  reporter.send(Gradient{"a", {1, 2}});
  reporter.send(Failure{"out of luck", false});
  reporter.send(Done());
  close(ends[1]);
  MessageReader reader;
  std::vector<size_t> kinds;
  char byte;
  while (read(ends[0], &byte, 1) == 1) {
    reader.add(&byte, 1);
    WorkerMessage message;
    while (reader.next(message)) {
      kinds.push_back(message.index());
      if (auto *failure = std::get_if<Failure>(&message)) {
        EXPECT_EQ(failure->text, "out of luck");
      }
      if (auto *gradient = std::get_if<Gradient>(&message)) {
        EXPECT_THAT(gradient->values, ElementsAre(1, 2));
      }
    }
  }
  close(ends[0]);
  EXPECT_THAT(kinds, ElementsAre(1, 4, 5));
}

} // namespace
