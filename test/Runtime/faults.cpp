// Lets a run on threads fail: ppcc-run-faults FAULT PROGRAM.JSON. Prints how
// each rank ended, and that all have. `alone`: all ranks in this thread, of
// which rank 1 throws.
#include "Faults.h"

#include "ppcc/Runtime/Cooperative.h"
#include "ppcc/Runtime/Threads.h"

#include <latch>

using namespace test;

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  std::string fault = argv[1];
  std::optional<FaultyProgram> faulty;
  try {
    faulty.emplace(fault, argv[2]);
  } catch (const rt::Error &error) {
    std::puts(error.what());
    return 1;
  }
  const rt::Program &program = faulty->program();

  if (fault == "alone") {
    std::vector<FaultyStage> stages(program.numRanks);
    report(1, [&] { rt::runCooperative(program, std::span(stages)); });
    sayThatAllEnded();
    return 0;
  }
  std::latch gaveUp(1);
  rt::ThreadNetwork<Vector> network(program.numRanks + (fault == "ranks"));
  {
    std::vector<std::jthread> threads;
    for (uint32_t rank = 0; rank != program.numRanks; ++rank)
      threads.emplace_back([&, rank] {
        rt::ThreadNetwork<Vector>::Endpoint endpoint(network, rank);
        FaultyStage stage(fault, [&] { gaveUp.wait(); });
        rt::Options options;
        if (fault == "stall")
          options.timeout = timeoutOf(rank);
        if (fault != "leave" || rank != 1)
          report(rank,
                 [&] { rt::run(program, rank, stage, endpoint, options); });
        if (rank == 0)
          gaveUp.count_down();
      });
  }
  sayThatAllEnded();
}
