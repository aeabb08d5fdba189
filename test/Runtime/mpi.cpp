// Runs programs on MPI with real numbers, one process a rank:
//
//   mpirun -np N ppcc-run-mpi FAULT [--trace=FILE] PROGRAM.JSON...
//
// FAULT is `none`, `wait-here`, `slow` (SlowStage.h), `any-size`, `digest`,
// `together` (whose members of groups wait for each other), `pool`, which
// counts the buffers of receives of one program, or one of Faults.h, for one
// program of N ranks (`ranks`: of N
// + 1). Without a fault N is the largest number of ranks: programs with fewer
// share the processes among them.
#include "ConcurrentStage.h"
#include "Faults.h"
#include "MutatedProgram.h"
#include "SlowStage.h"

#include "ppcc/Runtime/Mpi.h"
#include "ppcc/Runtime/Trace.h"

#include <csignal>
#include <unistd.h>

using namespace test;

namespace {

/// Leaves the size of messages open.
struct AnySize : NetworkStage {
  size_t messageBytes(const rt::Label &) { return 0; }
};

/// Numbers that count how often a transport needs new memory for them.
struct Buffer {
  using value_type = double;
  static inline size_t allocations = 0;
  std::vector<double> numbers;

  double *data() { return numbers.data(); }
  size_t size() const { return numbers.size(); }
  void resize(size_t size) {
    allocations += size > numbers.capacity();
    numbers.resize(size);
  }
};

/// Makes its own values and leaves the received ones where they are.
struct PoolStage : rt::StageHooks {
  using Value = Buffer;

  Value forward(const rt::ActionContext &, const rt::Inputs<Value> &) {
    return {Vector(width)};
  }
  Value backward(const rt::ActionContext &, Value *) { return {Vector(width)}; }
  Value backward_input(const rt::ActionContext &, Value *) {
    return {Vector(width)};
  }
  void backward_weight(const rt::ActionContext &) {}
  void add(Value &, const Value &) {}
  size_t messageBytes(const rt::Label &) { return width * sizeof(double); }
};

/// Counts the buffers of a run, and compares them with the compiler's number.
int runPool(const std::string &name) {
  std::ifstream file(name);
  rt::LoadedProgram loaded = rt::readJson(file);
  const rt::Program &program = loaded;
  rt::Mpi<Buffer> mpi;
  PoolStage stage;
  rt::Stats stats = rt::run(program, mpi.rank(), stage, mpi);
  unsigned most = program.ranks[mpi.rank()].receiveBuffers;
  std::printf("rank %u: %llu receives, %zu buffers, %u counted\n", mpi.rank(),
              static_cast<unsigned long long>(stats.receives),
              Buffer::allocations, most);
  return Buffer::allocations > most;
}

int worldRank();

/// Gives one rank another program than the others.
int runMutations(const std::vector<std::string> &names) {
  unsigned counts[2] = {}; // Ranks that refused, and all.
  for (unsigned pair = 0; pair != numMutations; ++pair) {
    std::ifstream file(names[pair % names.size()]);
    rt::LoadedProgram loaded = rt::readJson(file);
    const rt::Program &program = loaded;
    MutatedProgram other(program, pair);
    rt::Mpi<Vector> mpi;
    CountingStage stage;
    rt::Session session(program, stage, mpi);
    bool isMutated = mpi.rank() == pair % program.numRanks;
    counts[0] += refuses(program, other,
                         [&] { session.link(isMutated ? other : program); }) &&
                 stage.calls == 0;
    counts[1] += 1;
    session.link(program);
    session.step();
    session.step();
  }
  unsigned all[2];
  MPI_Reduce(counts, all, 2, MPI_UNSIGNED, MPI_SUM, 0, MPI_COMM_WORLD);
  if (worldRank() == 0)
    std::printf("%u pairs, refused on %u of %u ranks\n", numMutations, all[0],
                all[1]);
  return 0;
}

int worldRank() {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
int worldSize() {
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// Runs programs without a fault, and counts what all ranks find.
template <class Stage, size_t MaxChunk = INT32_MAX> class RunChecker {
public:
  RunChecker(const rt::Options &options, std::string traceFile)
      : options(options), traceFile(std::move(traceFile)) {}

  /// Runs each program in one of the groups of as many processes as it has
  /// ranks. The status to end with.
  int run(const std::vector<std::string> &names) {
    std::map<uint32_t, std::vector<rt::LoadedProgram>> programs;
    for (const std::string &name : names) {
      std::ifstream file(name);
      rt::LoadedProgram program = rt::readJson(file);
      uint32_t ranks = program.program().numRanks;
      programs[ranks].push_back(std::move(program));
    }
    for (const auto &[ranks, all] : programs)
      runGroups(ranks, all);
    return summarize();
  }

private:
  int summarize() const {
    unsigned long mine[] = {programs, distance.exact, distance.reordered,
                            failed},
                  all[4];
    MPI_Allreduce(mine, all, 4, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (worldRank() == 0)
      std::printf("%lu programs, %lu layers exact, %lu in another order, "
                  "%lu failed\n",
                  all[0], all[1], all[2], all[3]);
    return all[3] != 0;
  }

  void runGroups(uint32_t ranks, const std::vector<rt::LoadedProgram> &all) {
    size_t group = size_t(worldRank()) / ranks;
    size_t groups = size_t(worldSize()) / ranks;
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, int(group), 0, &comm);
    {
      rt::Mpi<Vector, MaxChunk> mpi(comm);
      for (size_t i = group; group < groups && i < all.size(); i += groups)
        runOne(all[i], mpi);
    }
    MPI_Comm_free(&comm);
  }

  void runOne(const rt::Program &program, rt::Mpi<Vector, MaxChunk> &mpi) {
    Stage stage;
    RunDifference found;
    try {
      std::optional<rt::Trace> trace;
      if (!traceFile.empty())
        options.trace = &trace.emplace(program.numRanks);
      rt::Stats stats = rt::run(program, mpi.rank(), stage, mpi, options);
      compare(stage.layers(), unpipelinedReference(program), found);
      comparePeaks(program, mpi.rank(), stats, found.wrong);
      if (trace) {
        mpi.gather(*trace);
        std::ofstream file(mpi.rank() == 0 ? traceFile : "/dev/null");
        rt::writeTrace(file, program, *trace);
      }
    } catch (const rt::Error &error) {
      std::puts(error.what());
      mpi.abort(1, std::chrono::seconds(30));
    }
    programs += mpi.rank() == 0;
    distance.exact += found.exact, distance.reordered += found.reordered;
    failed += !found.wrong.empty();
    if (!found.wrong.empty())
      std::printf("%s, %u ranks:%s\n", program.name, program.numRanks,
                  found.wrong.c_str());
  }

  rt::Options options;
  std::string traceFile;
  size_t programs = 0, failed = 0;
  RunDifference distance;
};

void die() { std::raise(SIGKILL); }
/// Longer than another process waits: nothing but time tells it.
void stall() { std::this_thread::sleep_for(std::chrono::seconds(4)); }

long long nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

int runFaulty(const std::string &fault, const std::string &name,
              const rt::Options &options) {
  std::printf("process %d\n", int(getpid()));
  std::fflush(stdout);
  rt::Mpi<Vector> mpi;
  FaultyStage stage(fault, fault == "stall" ? stall : die);
  bool good = report(mpi.rank(), [&] {
    FaultyProgram faulty(fault, name);
    rt::run(faulty.program(), mpi.rank(), stage, mpi, options);
  });
  // One machine has one clock.
  if (thrownAt)
    std::printf("thrown %lld\n", nanoseconds(*thrownAt));
  std::printf("ended %lld\n", nanoseconds(std::chrono::steady_clock::now()));
  std::fflush(stdout);
  if (!good)
    mpi.abort(1, std::chrono::seconds(30));
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  int threads;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 2)
    MPI_Abort(MPI_COMM_WORLD, 2);
  std::string fault = words[0], traceFile;
  words.erase(words.begin());
  if (words[0].starts_with("--trace=")) {
    traceFile = words[0].substr(8);
    words.erase(words.begin());
  }
  rt::Options options;
  if (fault == "rendezvous")
    options.waitPolicy = rt::WaitPolicy::Rendezvous;
  if (fault == "concurrent")
    options.overlap = rt::Overlap::Concurrent;
  if (fault == "stall")
    options.timeout = timeoutOf(uint32_t(worldRank()));

  int status = 0;
  if (fault == "any-size")
    status = RunChecker<AnySize>(options, traceFile).run(words);
  else if (fault == "parts") // As if an int held no more than 24.
    status = RunChecker<NetworkStage, 24>(options, traceFile).run(words);
  else if (fault == "digest")
    status = runMutations(words);
  else if (fault == "pool")
    status = runPool(words[0]);
  else if (fault == "concurrent")
    status = RunChecker<ConcurrentStage>(options, traceFile).run(words);
  else if (fault == "slow")
    status = RunChecker<SlowStage>(options, traceFile).run(words);
  else if (fault == "none" || fault == "rendezvous")
    status = RunChecker<NetworkStage>(options, traceFile).run(words);
  else
    status = runFaulty(fault, words[0], options);
  MPI_Finalize();
  return status;
}
