// Runs programs with real numbers and compares the gradients.
//
//   ppcc-run [--transport=cooperative|threads] [--concurrent] [--rendezvous]
//            [--peaks] [--slow | --barrier=MS] [--trace=FILE] PROGRAM...
//
// --peaks prints the most activations that each rank held, --trace writes what
// happened in the last run. --slow: stage s takes (1 + 4 s) * 3 ms for a
// forward and twice that for a backward, at least. --barrier: the members of
// groups wait for each other, for so long.
// A PROGRAM is a program.json, LIBRARY.so:SYMBOL, or FAMILIES.json@M.
#include "ConcurrentStage.h"
#include "LoadProgram.h"
#include "SlowStage.h"

#include "ppcc/Runtime/Cooperative.h"
#include "ppcc/Runtime/Threads.h"
#include "ppcc/Runtime/Trace.h"

#include <cstdio>

using namespace test;

namespace {

/// Runs a program and says what is wrong, or nothing.
template <class Stage>
RunDifference checkRun(const rt::Program &program, const std::string &transport,
                       rt::Options options, bool printsPeaks,
                       const std::string &traceFile) {
  std::optional<rt::Trace> trace;
  if (!traceFile.empty())
    options.trace = &trace.emplace(program.numRanks);
  std::vector<Stage> stages(program.numRanks);
  std::span<Stage> all(stages);
  std::vector<rt::Stats> stats =
      transport == "threads" ? rt::runThreads(program, all, options)
                             : rt::runCooperative(program, all, options);
  RunDifference distance;
  Layers expected = unpipelinedReference(program);
  size_t layers = 0, concurrentGroups = 0;
  for (uint32_t rank = 0; rank != program.numRanks; ++rank) {
    layers += stages[rank].layers().size();
    compare(stages[rank].layers(), expected, distance);
    comparePeaks(program, rank, stats[rank], distance.wrong);
    if (printsPeaks)
      std::printf("rank %u: %u activations\n", rank,
                  stats[rank].peakActivations);
    if (stages[rank].numActivations() != 0)
      distance.wrong += " activations are left";
    if constexpr (requires { stages[rank].numConcurrentGroups(); })
      concurrentGroups += stages[rank].numConcurrentGroups();
  }
  if (layers != expected.size())
    distance.wrong += " not all stages ran";
  if (concurrentGroups != 0)
    std::printf("members of %zu groups met\n", concurrentGroups);
  if (trace) {
    std::ofstream file(traceFile);
    rt::writeTrace(file, program, *trace);
  }
  return distance;
}

} // namespace

int main(int argc, char **argv) {
  rt::Options options;
  bool printsPeaks = false;
  auto *judged = checkRun<NetworkStage>;
  std::string traceFile;
  std::vector<std::string> transports{"cooperative", "threads"}, programs;
  for (int i = 1; i != argc; ++i) {
    std::string text = argv[i];
    if (text == "--concurrent")
      options.overlap = rt::Overlap::Concurrent;
    else if (text == "--rendezvous")
      options.waitPolicy = rt::WaitPolicy::Rendezvous;
    else if (text == "--peaks")
      printsPeaks = true;
    else if (text == "--slow")
      judged = checkRun<SlowStage>;
    else if (text.starts_with("--barrier=")) {
      judged = checkRun<ConcurrentStage>;
      ConcurrentStage::timeout =
          std::chrono::milliseconds(std::stoi(text.substr(10)));
    } else if (text.starts_with("--trace="))
      traceFile = text.substr(8);
    else if (text.starts_with("--transport="))
      transports = {text.substr(12)};
    else
      programs.push_back(text);
  }
  size_t exact = 0, reordered = 0;
  int failures = 0;
  for (const std::string &name : programs)
    for (const std::string &transport : transports)
      try {
        LoadedFile loaded = loadFile(name);
        RunDifference distance = judged(loaded.program(), transport, options,
                                        printsPeaks, traceFile);
        exact += distance.exact, reordered += distance.reordered;
        if (!distance.wrong.empty()) {
          std::printf("%s, %s:%s\n", name.c_str(), transport.c_str(),
                      distance.wrong.c_str());
          ++failures;
        }
      } catch (const std::exception &error) {
        std::printf("%s, %s: %s\n", name.c_str(), transport.c_str(),
                    error.what());
        ++failures;
      }
  std::printf("%zu programs, %zu layers exact, %zu in another order, %d "
              "failed\n",
              programs.size(), exact, reordered, failures);
  return failures != 0;
}
