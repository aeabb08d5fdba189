// The index of a program agrees with a search.
#include "ppcc/Analysis/Index/Dependences.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

#include <random>

using namespace ppcc;

static Program twoPipes() {
  Program program;
  program.editHead().numRanks = 1;
  program.editHead().pipes.push_back(
      {"a",
       0,
       2,
       std::vector<RankId>(5),
       {{StageId(0), StageId(3)}, {StageId(1), StageId(3)}}});
  program.editHead().pipes.push_back({"b", 7, 3, std::vector<RankId>(2), {}});
  program.editHead().pipes.push_back({"empty", 10, 0, {}, {}});
  program.editRows().beginRank();
  return program;
}

static void add(Program &program, uint32_t kind, uint32_t pipe, uint32_t stage,
                uint32_t microbatch) {
  Action action;
  action.kind = KindId(kind);
  action.pipe = PipeId(pipe);
  action.stage = StageId(stage);
  action.microbatch = microbatch;
  program.editRows().append(action);
}

TEST(ProgramIndex, edgesAreThoseOfTheProgram) {
  Program program = twoPipes();
  ProgramIndex index(program);
  unsigned edges = 0;
  for (uint32_t pipe = 0; pipe != program.pipes().size(); ++pipe)
    for (uint32_t stage = 0; stage != program.pipes()[pipe].numStages();
         ++stage)
      for (uint8_t slotBit :
           {slot::Output, slot::InputGrad, slot::WeightGrad}) {
        auto readers =
            readersOf(program.pipes()[pipe], StageId(stage), slotBit);
        EXPECT_EQ(index.readersOf(PipeId(pipe), StageId(stage), slotBit),
                  llvm::ArrayRef(readers));
        auto sources =
            sourcesOf(program.pipes()[pipe], StageId(stage), slotBit);
        EXPECT_EQ(index.sourcesOf(PipeId(pipe), StageId(stage), slotBit),
                  llvm::ArrayRef(sources));
        edges += readers.size();
      }
  EXPECT_EQ(edges, 2u * (4 + 2 + 1));
}

TEST(ProgramIndex, edgesOfAnyGraph) {
  std::mt19937 random(1);
  for (unsigned turn = 0; turn != 200; ++turn) {
    Program program;
    program.editHead().numRanks = 1;
    Pipe pipe;
    pipe.rankOfStage.resize(1 + random() % 7);
    for (uint32_t from = 0; from != pipe.numStages(); ++from)
      for (uint32_t to = from + 1; to != pipe.numStages(); ++to)
        if (bool isNext = to == from + 1; random() % 3 == 0)
          isNext ? pipe.gaps.push_back(StageId(from))
                 : pipe.skipEdges.push_back({StageId(from), StageId(to)});
    program.editHead().pipes.push_back(pipe);
    ProgramIndex index(program);
    for (uint32_t from = 0; from != pipe.numStages(); ++from)
      for (uint32_t to = 0; to != pipe.numStages(); ++to) {
        bool isEdge = from < to && pipe.hasEdge(StageId(from), StageId(to));
        auto readers = index.readersOf(PipeId(0), StageId(from), slot::Output);
        EXPECT_EQ(llvm::is_contained(readers, StageId(to)), isEdge);
        EXPECT_TRUE(llvm::is_sorted(readers));
        auto sources = sourcesOf(pipe, StageId(from), slot::InputGrad);
        EXPECT_EQ(llvm::ArrayRef(sources), readers);
        EXPECT_EQ(index.sourcesOf(PipeId(0), StageId(from), slot::InputGrad),
                  readers);
      }
  }
}

TEST(ProgramIndex, theFirstDefinerCounts) {
  Program program = twoPipes();
  add(program, kind::SendForward, 1, 1, 8);
  add(program, kind::Forward, 1, 1, 8);
  add(program, kind::Forward, 1, 1, 8);
  add(program, kind::BackwardInput, 1, 1, 8);
  add(program, kind::Backward, 1, 1, 8);
  ProgramIndex index(program);
  EXPECT_EQ(index.numPairs(), 5u * 2 + 2 * 3);
  auto definer = [&](uint8_t slotBit) {
    return index.definer(PipeId(1), StageId(1), 8, slotBit);
  };
  EXPECT_EQ(definer(slot::Output), ActionId(1));
  EXPECT_EQ(definer(slot::InputGrad), ActionId(3));
  EXPECT_EQ(definer(slot::WeightGrad), ActionId(4));
  EXPECT_EQ(index.definer(PipeId(1), StageId(1), 9, slot::Output),
            std::nullopt);
  EXPECT_EQ(index.definer(PipeId(1), StageId(0), 8, slot::Output),
            std::nullopt);
}

TEST(ProgramIndex, knowsNothingOfAProgramThatIsFarTooShort) {
  Program program = twoPipes();
  program.editHead().pipes.push_back(
      {"huge", 1000, 1u << 31, std::vector<RankId>(100), {}});
  ProgramIndex index(program);
  EXPECT_FALSE(index.fits());
  EXPECT_EQ(index.definer(PipeId(3), StageId(99), 1u << 30, slot::Output),
            std::nullopt);
}

TEST(Dependences, ofABackwardAreItsForwardAndTheReaders) {
  Program program = twoPipes();
  add(program, kind::Forward, 0, 1, 0);  // 0
  add(program, kind::Backward, 0, 2, 0); // 1
  add(program, kind::Backward, 0, 3, 0); // 2
  add(program, kind::Backward, 0, 1, 0); // 3
  ProgramIndex index(program);
  std::vector<uint32_t> needed;
  forEachDependence(program, index, ActionId(3),
                    [&](ActionId id) { needed.push_back(id.value); });
  EXPECT_EQ(needed, (std::vector<uint32_t>{0, 1, 2}));
}
