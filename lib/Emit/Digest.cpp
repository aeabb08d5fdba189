#include "ppcc/Emit/Emitter.h"

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
  rt::RowFingerprint fingerprint;
  forEachSegment(program, rank, [&](RowRange rows, const Loop *loop) {
    auto rowAt = [&](uint64_t i) {
      Action action = program[ActionId(rows.from.value + i)];
      return rt::RowFingerprint::Row{action.kind.value,
                                     action.pipe.value,
                                     action.stage.value,
                                     action.microbatch,
                                     action.hasPeer() ? action.peer.value : ~0u,
                                     action.hasMicrobatch(),
                                     action.joined};
    };
    fingerprint.add(rows.size(), rowAt, loop ? loop->count : 1,
                    loop ? loop->advance : 0);
  });
  fingerprint.appendTo(bytes);
}

} // namespace

std::string ppcc::digestOf(const Program &program) {
  rt::DigestBytes bytes;
  bytes.text("ppcc.digest.2");
  bytes.numbers(program.numRanks(), program.hasBackward());
  bytes.list(program.kinds().rows(), [&](const KindInfo &kind) {
    bytes.text(kind.mnemonic);
    bytes.text(kindClassName(kind.kindClass));
    bytes.text(collectiveName(kind.collective));
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
