// Times the engine on one_f_one_b with stages that compute nothing:
// ppcc-bench-engine PROGRAM.JSON.
#include "Engine.h"

#include "ppcc/Runtime/Cooperative.h"
#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Threads.h"

#include <fstream>
#include <sstream>

using namespace bench;

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

  std::vector<Idle> stages(program.numRanks);
  Stopwatch linking;
  rt::CooperativeSession<Idle> session(program, std::span(stages));
  linking.report("linking", actions);
  // The first step takes the memory of messages.
  for (const char *what : {"cooperative, first step", "cooperative"}) {
    Stopwatch cooperative;
    session.step();
    cooperative.report(what, actions);
  }

  Stopwatch threads;
  rt::runThreads(program, std::span(stages));
  threads.report("threads", actions);

  using Network = rt::ThreadNetwork<Value>;
  Stopwatch hand;
  Network network(program.numRanks);
  {
    std::vector<std::jthread> all;
    for (uint32_t rank = 0; rank != program.numRanks; ++rank)
      all.emplace_back([&, rank] {
        Network::Endpoint endpoint(network, rank);
        byHand(rank, program.numRanks, program.pipes[0].numMicrobatches,
               endpoint);
        endpoint.finish({});
      });
  }
  hand.report("threads, written by hand", actions);
  return 0;
}
