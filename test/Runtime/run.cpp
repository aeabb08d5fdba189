// Runs programs with real numbers and compares the gradients.
//
//   ppcc-run [--transport=cooperative|threads] [--together] [--wait-here]
//            [--peaks] PROGRAM...
//
// --peaks prints the most activations that each rank held.
// A PROGRAM is a program.json, or LIBRARY.so:SYMBOL.
#include "Verdict.h"

#include "ppcc/Runtime/Cooperative.h"
#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Threads.h"

#include <cstdio>
#include <dlfcn.h>
#include <fstream>

using namespace test;

namespace {

struct Loaded {
  rt::LoadedProgram owned;
  const rt::Program *program = nullptr;
};

Loaded load(const std::string &name) {
  Loaded loaded;
  size_t colon = name.rfind(".so:");
  if (colon == std::string::npos) {
    std::ifstream file(name, std::ios::binary);
    loaded.owned = rt::readJson(file);
    loaded.program = &loaded.owned.program();
    return loaded;
  }
  void *library = dlopen(name.substr(0, colon + 3).c_str(), RTLD_NOW);
  void *symbol =
      library ? dlsym(library, name.substr(colon + 4).c_str()) : nullptr;
  if (!symbol)
    throw rt::Error(dlerror());
  loaded.program = static_cast<const rt::Program *>(symbol);
  return loaded;
}

/// Runs a program and says what is wrong, or nothing.
Distance judge(const rt::Program &program, const std::string &transport,
               const rt::Options &options, bool printsPeaks) {
  std::vector<NetworkStage> stages(program.numRanks);
  std::span<NetworkStage> all(stages);
  std::vector<rt::Stats> stats =
      transport == "threads" ? rt::runThreads(program, all, options)
                             : rt::runCooperative(program, all, options);
  Distance distance;
  Layers expected = plainLoop(program);
  size_t layers = 0;
  for (uint32_t rank = 0; rank != program.numRanks; ++rank) {
    layers += stages[rank].layers().size();
    compare(stages[rank].layers(), expected, distance);
    comparePeaks(program, rank, stats[rank], distance.wrong);
    if (printsPeaks)
      std::printf("rank %u: %u activations\n", rank,
                  stats[rank].peakActivations);
    if (stages[rank].numActivations() != 0)
      distance.wrong += " activations are left";
  }
  if (layers != expected.size())
    distance.wrong += " not all stages ran";
  return distance;
}

} // namespace

int main(int argc, char **argv) {
  rt::Options options;
  bool printsPeaks = false;
  std::vector<std::string> transports{"cooperative", "threads"}, programs;
  for (int i = 1; i != argc; ++i) {
    std::string text = argv[i];
    if (text == "--together")
      options.overlap = rt::Overlap::Together;
    else if (text == "--wait-here")
      options.waits = rt::Waits::Here;
    else if (text == "--peaks")
      printsPeaks = true;
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
        Loaded loaded = load(name);
        Distance distance =
            judge(*loaded.program, transport, options, printsPeaks);
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
