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
  rt::RowSums sums;
  forEachSegment(program, rank, [&](RowRange rows, const Loop *loop) {
    auto rowAt = [&](uint64_t i) {
      Action action = program[ActionId(rows.from.value + i)];
      return rt::RowSums::Row{action.kind.value,
                              action.pipe.value,
                              action.stage.value,
                              action.microbatch,
                              action.hasPeer() ? action.peer.value : ~0u,
                              action.hasMicrobatch(),
                              action.joined};
    };
    sums.add(rows.size(), rowAt, loop ? loop->count : 1,
             loop ? loop->advance : 0);
  });
  sums.spell(bytes);
}

} // namespace

std::string ppcc::digestOf(const Program &program) {
  rt::DigestBytes bytes;
  bytes.text("ppcc.digest.2");
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
