#include "ppcc/Analysis/Report/ReceiveBuffers.h"

using namespace ppcc;

ReceiveBuffers::ReceiveBuffers(const Program &program,
                               const ProgramIndex &index)
    : edgeIndex(program, index), peakBuffersOfEdge(edgeIndex.edges().size()) {
  ReceiveWalk walk(program, edgeIndex);
  std::vector<uint32_t> held(peakBuffersOfEdge.size());
  for (RankId rank : program.ranks()) {
    uint32_t heldByRank = 0, peak = 0;
    walk.run(
        rank,
        [&](uint32_t, ActionId) { waitRows.push_back(program.end(rank)); },
        [&](uint32_t, ActionId, Message message) {
          uint32_t &here = held[message.edge];
          peakBuffersOfEdge[message.edge] =
              std::max(peakBuffersOfEdge[message.edge], ++here);
          peak = std::max(peak, ++heldByRank);
        },
        [&](uint32_t receive, ActionId item, Message message) {
          waitRows[receive] = item;
          --held[message.edge];
          --heldByRank;
        });
    peakBuffersOfRank.push_back(peak);
  }
}
