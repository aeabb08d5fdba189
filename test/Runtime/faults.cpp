// Lets a run on threads fail: ppcc-run-faults FAULT PROGRAM.JSON. Prints how
// each rank ended, and whether all did within five seconds.
#include "Faults.h"

#include "ppcc/Runtime/Threads.h"

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

  auto start = std::chrono::steady_clock::now();
  rt::ThreadNetwork<Vector> network(program.numRanks + (fault == "ranks"));
  {
    std::vector<std::jthread> threads;
    for (uint32_t rank = 0; rank != program.numRanks; ++rank)
      threads.emplace_back([&, rank] {
        rt::ThreadNetwork<Vector>::Endpoint endpoint(network, rank);
        FaultyStage stage(fault, nullptr);
        rt::Options options;
        if (fault == "stall")
          options.patience = patienceOf(rank);
        if (fault != "leave" || rank != 1)
          report(rank,
                 [&] { rt::run(program, rank, stage, endpoint, options); });
      });
  }
  bool inTime =
      std::chrono::steady_clock::now() - start < std::chrono::seconds(5);
  std::puts(inTime ? "all threads ended in time" : "this took too long");
  return !inTime;
}
