#include "ppcc/Runtime/Threads.h"

#include <cstdio>
#include <map>

using namespace ppcc::rt;

extern "C" const Program ppcc_two_ahead;

/// The stage of one rank: y = weight * x.
struct Scale : StageHooks {
  using Value = double;

  double weight = 0.5, gradient = 0;
  std::map<uint32_t, double> kept; // What the backward needs, by microbatch.

  double forward(const ActionContext &work, const Inputs<double> &inputs) {
    double x = work.isFirst() ? work.microbatch + 1 : inputs[0];
    kept[work.microbatch] = x;
    return weight * x;
  }
  double backward(const ActionContext &work, double *outputGrad) {
    double x = kept[work.microbatch];
    double dy = outputGrad ? *outputGrad : weight * x; // The last: d(y*y/2)/dy.
    gradient += dy * x;
    return dy * weight;
  }
  void release(const ActionContext &work) { kept.erase(work.microbatch); }
};

int main() try {
  std::vector<Scale> stages(ppcc_two_ahead.numRanks);
  std::vector<Stats> ranks = runThreads(ppcc_two_ahead, std::span(stages));
  for (size_t rank = 0; rank != ranks.size(); ++rank)
    std::printf("rank %d: %d actions, at most %d activations, gradient %g\n",
                int(rank), int(ranks[rank].actions),
                int(ranks[rank].peakActivations), stages[rank].gradient);
} catch (const Error &error) {
  std::printf("%s\n", error.what());
  return 1;
}
