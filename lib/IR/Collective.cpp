#include "ppcc/IR/Collective.h"

#include "ppcc/Runtime/Program.h"

using namespace ppcc;

bool ppcc::isMember(const KindInfo &info, const Pipe &pipe, StageId stage) {
  return info.collective != Collective::Stages ||
         rt::namesStage(info.stages, pipe.numStages(), stage.value);
}

/// Of a message, whether the stage has an edge of the kind to another rank.
static bool willHave(const Pipe &pipe, StageId stage, const KindInfo &info) {
  if (info.isCompute())
    return true;
  auto ends = info.isSend() ? readersOf(pipe, stage, info.mainSlot())
                            : sourcesOf(pipe, stage, info.mainSlot());
  return llvm::any_of(ends, [&](StageId end) {
    return pipe.rankOfStage[end.value] != pipe.rankOfStage[stage.value];
  });
}

bool ppcc::isApplicableAt(const KindTable &kinds, const KindInfo &info,
                          const Pipe &pipe, StageId stage,
                          const BitVector &leftOut) {
  return isMember(info, pipe, stage) &&
         llvm::all_of(info.rules, [&](const KindRule &rule) {
           return llvm::any_of(rule.kinds, [&](KindId kind) {
             return (leftOut.empty() || !leftOut.test(kind.value)) &&
                    willHave(pipe, stage, kinds[kind]);
           });
         });
}
