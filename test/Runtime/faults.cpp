// Lets a run on threads fail: ppcc-faults FAULT PROGRAM.JSON. Prints how each
// rank ended, and whether all did within five seconds.
#include "Faults.h"

#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Threads.h"

#include <fstream>

using namespace test;

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  std::string fault = argv[1];
  std::ifstream file(argv[2]);
  rt::LoadedProgram loaded = rt::readJson(file);
  rt::Program program = loaded.program();
  if (fault == "abi")
    program.abi += 1;
  rt::Options options;
  if (fault == "stall")
    options.patience = std::chrono::milliseconds(300);

  auto start = std::chrono::steady_clock::now();
  rt::ThreadNetwork<Vector> network(program.numRanks + (fault == "ranks"));
  {
    std::vector<std::jthread> threads;
    for (uint32_t rank = 0; rank != program.numRanks; ++rank)
      threads.emplace_back([&, rank] {
        rt::ThreadNetwork<Vector>::Endpoint endpoint(network, rank);
        FaultyStage stage(fault, nullptr);
        if (fault != "leave" || rank != 1)
          runOne(program, rank, stage, endpoint, options);
      });
  }
  bool inTime =
      std::chrono::steady_clock::now() - start < std::chrono::seconds(5);
  std::puts(inTime ? "all threads ended in time" : "this took too long");
  return !inTime;
}
