// Random programs whose ranks never wait for each other.
#pragma once

#include "ppcc/IR/Program.h"

#include <random>

namespace ppcc {

/// Makes programs of a few ranks, stages and microbatches: any placement, one
/// or two pipes, skip edges, gaps, slices of sequences, scaled microbatches,
/// whole or split backwards, overlap groups, random costs. The same for the
/// same seed.
class RandomProgram {
public:
  /// Costs of actions and messages lie in `minCost` to 5.
  RandomProgram(unsigned seed, Time minCost) : random(seed) {
    program.editHead().numRanks = 1 + pick(4);
    program.editHead().hasBackward = pick(4) != 0;
    uint32_t first = 0;
    for (uint32_t i = 0, pipes = 1 + pick(2); i != pipes; ++i) {
      Pipe pipe;
      pipe.name = "pipe" + std::to_string(i);
      pipe.firstMicrobatch = first;
      pipe.numMicrobatches = 1 + pick(4);
      first = pipe.endMicrobatch();
      for (uint32_t stage = 0, stages = 1 + pick(5); stage != stages; ++stage)
        pipe.rankOfStage.push_back(RankId(pick(program.numRanks())));
      for (uint32_t to = 2; to < pipe.numStages(); ++to)
        if (pick(4) == 0)
          pipe.skipEdges.push_back({StageId(pick(to - 1)), StageId(to)});
      std::sort(pipe.skipEdges.begin(), pipe.skipEdges.end());
      for (uint32_t stage = 0; stage + 1 < pipe.numStages(); ++stage)
        if (pick(5) == 0)
          pipe.gaps.push_back(StageId(stage));
      if (pick(3) == 0)
        pipe.slices = pipe.numMicrobatches;
      program.editHead().pipes.push_back(pipe);
    }
    costs(minCost);
    lists.resize(program.numRanks());
    addWork();
    while (!open.empty())
      run();
    for (const auto &list : lists) {
      program.editRows().beginRank();
      for (const Action &action : list)
        program.editRows().append(action);
    }
  }

  Program program;

private:
  uint32_t pick(uint32_t below) { return random() % below; }

  void costs(Time least) {
    auto cost = [&] { return (least + pick(5)) * cost::unit; };
    program.editHead().costs.add(Cost::Latency, cost());
    if (pick(2))
      program.editHead().costs.add(Cost::Overlap, cost());
    while (pick(2)) {
      CostSetting scale{Cost(size_t(Cost::Scale) + pick(5)), {}, {}, {}, {}};
      for (uint64_t i = 0; i != program.totalMicrobatches(); ++i)
        scale.values.push_back((1 + pick(3)) * scaling::unit);
      program.editHead().costs.settings.push_back(scale);
    }
    for (uint32_t kind = 0; kind != program.kinds().size(); ++kind) {
      if (!program.kinds()[KindId(kind)].isCompute())
        continue;
      program.editHead().costs.add(Cost::Action, KindId(kind), cost());
      for (uint32_t pipe = 0; pipe != program.pipes().size(); ++pipe) {
        CostSetting setting{Cost::Action, KindId(kind), {}, PipeId(pipe), {}};
        for (uint32_t i = 0; i != program.pipes()[pipe].numStages(); ++i)
          setting.values.push_back(cost());
        program.editHead().costs.settings.push_back(setting);
      }
    }
  }

  void addWork() {
    uint8_t both = slot::InputGrad | slot::WeightGrad;
    for (uint32_t pipe = 0; pipe != program.pipes().size(); ++pipe)
      for (uint32_t stage = 0; stage != program.pipes()[pipe].numStages();
           ++stage)
        for (uint32_t mb = program.pipes()[pipe].firstMicrobatch;
             mb != program.pipes()[pipe].endMicrobatch(); ++mb) {
          Action action;
          action.pipe = PipeId(pipe);
          action.stage = StageId(stage);
          action.microbatch = mb;
          bool split = pick(2);
          for (uint8_t slots :
               {uint8_t(slot::Output), both, uint8_t(slot::InputGrad),
                uint8_t(slot::WeightGrad)}) {
            if (slots != slot::Output &&
                (!program.hasBackward() || split == (slots == both)))
              continue;
            action.kind = *program.kinds().find(KindClass::Compute, slots);
            open.push_back(action);
          }
        }
  }

  bool isDone(const Action &of, StageId stage, uint8_t slotBit,
              std::optional<uint32_t> microbatch = std::nullopt) const {
    for (const Action &other : done)
      if (other.pipe == of.pipe && other.stage == stage &&
          other.microbatch == microbatch.value_or(of.microbatch) &&
          (program.kinds()[other.kind].defines & slotBit))
        return true;
    return false;
  }

  bool canRun(const Action &action) const {
    const KindInfo &info = program.kinds()[action.kind];
    for (uint8_t bit : {slot::Output, slot::InputGrad, slot::WeightGrad}) {
      if ((info.needs & bit) && !isDone(action, action.stage, bit))
        return false;
      if (!(info.defines & bit))
        continue;
      const Pipe &pipe = program.pipes()[action.pipe.value];
      for (StageId source : sourcesOf(pipe, action.stage, bit))
        if (!isDone(action, source, bit))
          return false;
      if (auto before = pipe.sliceBefore(action.microbatch, bit))
        if (!isDone(action, action.stage, bit, before))
          return false;
    }
    return true;
  }

  /// Runs an action, perhaps with others of its rank in one group.
  void run() {
    std::vector<size_t> able;
    for (size_t i = 0; i != open.size(); ++i)
      if (canRun(open[i]))
        able.push_back(i);
    std::shuffle(able.begin(), able.end(), random);
    RankId rank = program.rankOfStage(open[able[0]].pipe, open[able[0]].stage);
    std::vector<size_t> group;
    for (size_t i : able)
      if (program.rankOfStage(open[i].pipe, open[i].stage) == rank &&
          (group.empty() || pick(6) == 0))
        group.push_back(i);
    std::sort(group.begin(), group.end(), std::greater<>());
    bool joined = false;
    for (size_t i : group) {
      open[i].joined = std::exchange(joined, true);
      lists[rank.value].push_back(open[i]);
      done.push_back(open[i]);
      open.erase(open.begin() + i);
    }
  }

  std::mt19937 random;
  std::vector<Action> open, done;
  std::vector<std::vector<Action>> lists;
};

} // namespace ppcc
