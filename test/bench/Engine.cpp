// Times the engine on one_f_one_b with stages that compute nothing, and what
// somebody would write by hand: ppcc-bench-engine PROGRAM.JSON.
#include "Engine.h"
#include "HandWritten.h"

#include "ppcc/Runtime/Cooperative.h"
#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Threads.h"

#include <barrier>
#include <fstream>
#include <optional>
#include <sstream>

using namespace bench;

namespace {

/// The shortest time of some rounds of all ranks, each in a thread of its own;
/// `make` gives what a rank does in one.
template <class Make> double shortest(uint32_t ranks, int rounds, Make make) {
  using Clock = std::chrono::steady_clock;
  std::barrier roundBarrier(ranks);
  double best = 1e9;
  std::vector<std::jthread> threads;
  for (uint32_t rank = 0; rank != ranks; ++rank)
    threads.emplace_back([&, rank] {
      auto round = make(rank);
      for (int i = 0; i != rounds; ++i) {
        roundBarrier.arrive_and_wait();
        Clock::time_point start = Clock::now();
        round();
        roundBarrier.arrive_and_wait();
        std::chrono::duration<double> took = Clock::now() - start;
        if (rank == 0)
          best = std::min(best, took.count());
      }
    });
  threads.clear();
  return best;
}

double engine(const rt::Program &program, int rounds) {
  using Endpoint = rt::ThreadNetwork<Value>::Endpoint;
  rt::ThreadNetwork<Value> network(program.numRanks);
  std::vector<NoopStage> stages(program.numRanks);
  std::deque<std::optional<Endpoint>> endpoints(program.numRanks);
  return shortest(program.numRanks, rounds, [&](uint32_t rank) {
    endpoints[rank].emplace(network, rank);
    auto session = std::make_shared<rt::Session<NoopStage, Endpoint>>(
        program, stages[rank], *endpoints[rank]);
    return [session] { session->step(); };
  });
}

double byHand(const rt::Program &program, int rounds) {
  byhand::Network network(program.numRanks, program.pipes[0].numMicrobatches);
  return shortest(program.numRanks, rounds, [&](uint32_t rank) {
    return [&network, rank] { network.run(rank); };
  });
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  std::ostringstream text;
  text << std::ifstream(argv[1], std::ios::binary).rdbuf();
  Stopwatch reading;
  rt::LoadedProgram loaded = rt::readJson(text.str());
  const rt::Program &program = loaded.program();
  uint64_t actions = actionsOf(program);
  reading.report("reading program.json", actions);

  std::vector<NoopStage> stages(program.numRanks);
  Stopwatch linking;
  rt::CooperativeSession<NoopStage> session(program, std::span(stages));
  linking.report("linking", actions);
  // The first step takes the memory of messages.
  Stopwatch first;
  session.step();
  first.report("cooperative, first step", actions);
  std::optional<Stopwatch> best;
  for (int i = 0; i != 20; ++i) {
    Stopwatch cooperative;
    session.step();
    cooperative.stop();
    if (!best || cooperative.seconds() < best->seconds())
      best = cooperative;
  }
  best->report("cooperative, best of 20", actions);

  // In turns, as the machine may be busier at one time than at another.
  struct {
    const char *what;
    double (*time)(const rt::Program &, int);
    double best = 1e9;
  } runs[] = {
      {"threads", engine},
      {"by hand, std::mutex", byHand},
  };
  std::vector<double> ratios;
  for (int iteration = 0; iteration != 8; ++iteration) {
    double times[2];
    for (int i = 0; i != 2; ++i) {
      times[i] = runs[i].time(program, 3);
      runs[i].best = std::min(runs[i].best, times[i]);
    }
    ratios.push_back(times[0] / times[1]);
  }
  for (auto &run : runs)
    std::printf("%-24s %8.3f s %8.1f ns/action\n", run.what, run.best,
                run.best / double(actions) * 1e9);
  std::printf("threads to by hand: %.2f in the median turn\n", median(ratios));
  return 0;
}
