// Gives one rank another program than the others, then all the same to the same
// session, then all another: ppcc-run-digest PROGRAM.JSON..., of one number of
// ranks. Programs that differ in one row are refused before the first action,
// on each transport of one process.
#include "MutatedProgram.h"

#include "ppcc/Runtime/Cooperative.h"
#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Threads.h"

#include <atomic>
#include <fstream>

using namespace test;

namespace {

/// How many ranks refused, and computed nothing until then.
unsigned cooperative(const rt::Program &program, const rt::Program &other,
                     const rt::Program &next, uint32_t rank) {
  std::vector<CountingStage> stages(program.numRanks);
  std::vector<const rt::Program *> programs(program.numRanks, &program);
  rt::CooperativeSession<CountingStage> session(program, std::span(stages));
  programs[rank] = &other;
  bool refused = refuses(program, other, [&] { session.link(programs); });
  for (const CountingStage &stage : stages)
    refused &= stage.calls == 0;
  session.link(program);
  session.step();
  session.link(next);
  session.step();
  session.step();
  return refused ? program.numRanks : 0;
}

unsigned threads(const rt::Program &program, const rt::Program &other,
                 const rt::Program &next, uint32_t rank) {
  std::atomic<unsigned> refused = 0;
  rt::ThreadNetwork<Vector> network(program.numRanks);
  std::vector<std::jthread> ranks;
  for (uint32_t i = 0; i != program.numRanks; ++i)
    ranks.emplace_back([&, i] {
      rt::ThreadNetwork<Vector>::Endpoint endpoint(network, i);
      CountingStage stage;
      rt::Session session(program, stage, endpoint);
      refused += refuses(program, other,
                         [&] { session.link(i == rank ? other : program); }) &&
                 stage.calls == 0;
      session.link(program);
      session.step();
      session.link(next);
      session.step();
      session.step();
    });
  ranks.clear();
  return refused;
}

} // namespace

int main(int argc, char **argv) {
  using Transport = unsigned (*)(const rt::Program &, const rt::Program &,
                                 const rt::Program &, uint32_t);
  const std::pair<const char *, Transport> transports[] = {
      {"cooperative", cooperative}, {"threads", threads}};
  for (auto [name, transport] : transports) {
    unsigned pairs = 0, refused = 0, expected = 0;
    for (; pairs != numMutations; ++pairs) {
      auto load = [&](unsigned number) {
        std::ifstream file(argv[1 + int(number) % (argc - 1)]);
        return rt::readJson(file);
      };
      rt::LoadedProgram program = load(pairs), next = load(pairs + 1);
      MutatedProgram other(program, pairs);
      refused +=
          transport(program, other, next, pairs % program.program().numRanks);
      expected += program.program().numRanks;
    }
    std::printf("%s: %u pairs, refused on %u of %u ranks\n", name, pairs,
                refused, expected);
  }
}
