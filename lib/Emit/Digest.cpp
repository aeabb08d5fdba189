#include "ppcc/Emit/Digest.h"

#include "ppcc/IR/Loops.h"
#include "ppcc/Runtime/Digest.h"

using namespace ppcc;

namespace {

void digestPipe(rt::DigestBytes &bytes, const Pipe &pipe) {
  auto ids = [&](const auto &list) {
    bytes.list(list, [&](auto id) { bytes.numbers(id.value); });
  };
  bytes.numbers(pipe.firstMicrobatch, pipe.endMicrobatch());
  ids(pipe.rankOfStage);
  bytes.list(pipe.skipEdges, [&](auto edge) {
    bytes.numbers(edge.first.value, edge.second.value);
  });
  ids(pipe.gaps);
  bytes.numbers(pipe.slices);
  bytes.list(pipe.tensors, [&](const EdgeTensors &edge) {
    bytes.numbers(edge.from.value, edge.to.value, edge.needsShapes());
    bytes.list(edge.tensors, [&](const Tensor &tensor) {
      bytes.text(tensor.name);
      bytes.text(elementTypeName(tensor.type));
      bytes.list(tensor.dims);
    });
  });
}

void digestRows(rt::DigestBytes &bytes, const Program &program, RankId rank) {
  uint64_t count = 0;
  forEachStretch(program, rank,
                 [&](RowRange rows, uint32_t) { count += rows.size(); });
  bytes.numbers(count);
  auto column = [&](auto valueOf) {
    bytes.column([&](auto put) {
      forEachStretch(program, rank, [&](RowRange rows, uint32_t advance) {
        for (ActionId row : rows)
          put(valueOf(program[row], advance));
      });
    });
  };
  using Row = const Action &;
  column([](Row action, uint32_t) { return action.kind.value; });
  column([](Row action, uint32_t) { return action.pipe.value; });
  column([](Row action, uint32_t) { return action.stage.value; });
  column([](Row action, uint32_t advance) {
    return action.microbatch + (action.hasMicrobatch() ? advance : 0);
  });
  column([](Row action, uint32_t) {
    return action.hasPeer() ? action.peer.value : ~0u;
  });
  bytes.column([&](auto put) {
    uint32_t groups = 0;
    forEachStretch(program, rank, [&](RowRange rows, uint32_t) {
      for (RowRange item : program.items(rows)) {
        uint32_t number = item.size() > 1 ? groups++ : ~0u;
        for (size_t i = 0; i != item.size(); ++i)
          put(number);
      }
    });
  });
}

} // namespace

std::string ppcc::digestOf(const Program &program) {
  rt::DigestBytes bytes;
  bytes.text("ppcc.digest.1");
  bytes.numbers(program.numRanks(), program.hasBackward());
  bytes.list(program.kinds().rows(), [&](const KindInfo &kind) {
    bytes.text(kind.letters);
    bytes.text(kindClassName(kind.kindClass));
    bytes.text(meetingName(kind.meeting));
    bytes.list(kind.stages);
  });
  bytes.list(program.pipes(),
             [&](const Pipe &pipe) { digestPipe(bytes, pipe); });
  bytes.list(program.preconnect(), [&](RankPair pair) {
    bytes.numbers(pair.low.value, pair.high.value);
  });
  for (RankId rank : program.ranks())
    digestRows(bytes, program, rank);
  return bytes.end();
}
