// Runs a program on MPI with real numbers, one process a rank:
//
//   mpirun -np P ppcc-run-mpi FAULT PROGRAM.JSON
//
// FAULT is `none`, `wait-here`, `any-size`, one of Faults.h, or `pool`, which
// counts the buffers of receives.
#include "Faults.h"
#include "Verdict.h"

#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Mpi.h"

#include <csignal>
#include <fstream>

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

  Value forward(const rt::Work &, const rt::Inputs<Value> &) {
    return {Vector(width)};
  }
  Value backward(const rt::Work &, Value *) { return {Vector(width)}; }
  Value backward_input(const rt::Work &, Value *) { return {Vector(width)}; }
  void backward_weight(const rt::Work &) {}
  void add(Value &, const Value &) {}
  size_t messageBytes(const rt::Label &) { return width * sizeof(double); }
};

/// Counts the buffers of a run, and compares them with the compiler's number.
int runPool(const rt::Program &program) {
  rt::Mpi<Buffer> mpi;
  PoolStage stage;
  rt::Stats stats = rt::run(program, mpi.rank(), stage, mpi);
  unsigned most = program.ranks[mpi.rank()].receiveBuffers;
  std::printf("rank %u: %llu receives, %zu buffers, %u counted\n", mpi.rank(),
              static_cast<unsigned long long>(stats.receives),
              Buffer::allocations, most);
  return Buffer::allocations > most;
}

/// Runs without a fault and prints the verdict of all ranks.
template <class Stage>
int runWell(const rt::Program &program, const rt::Options &options) {
  rt::Mpi<Vector> mpi;
  Stage stage;
  Distance distance;
  try {
    rt::Stats stats = rt::run(program, mpi.rank(), stage, mpi, options);
    compare(stage.layers(), plainLoop(program), distance);
    comparePeaks(program, mpi.rank(), stats, distance.wrong);
  } catch (const rt::Error &error) {
    std::puts(error.what());
    mpi.abort(1);
  }
  if (!distance.wrong.empty())
    std::puts(distance.wrong.c_str());
  unsigned long mine[] = {distance.exact, distance.reordered,
                          !distance.wrong.empty()},
                all[3];
  MPI_Allreduce(mine, all, 3, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (mpi.rank() == 0)
    std::printf("%lu layers exact, %lu in another order, %lu failed\n", all[0],
                all[1], all[2]);
  return all[2] != 0;
}

void die() { std::raise(SIGKILL); }

} // namespace

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc != 3)
    MPI_Abort(MPI_COMM_WORLD, 2);
  std::string fault = argv[1];
  std::ifstream file(argv[2]);
  rt::LoadedProgram program = rt::readJson(file);
  rt::Options options;
  if (fault == "wait-here")
    options.waits = rt::Waits::Here;
  if (fault == "stall")
    options.patience = std::chrono::milliseconds(300);

  int status = 0;
  if (fault == "any-size") {
    status = runWell<AnySize>(program, options);
  } else if (fault == "pool") {
    status = runPool(program);
  } else if (fault == "none" || fault == "wait-here") {
    status = runWell<NetworkStage>(program, options);
  } else {
    rt::Mpi<Vector> mpi;
    FaultyStage stage(fault, die);
    if (!runOne<rt::Mpi<Vector>>(program, mpi.rank(), stage, mpi, options))
      mpi.abort(1);
  }
  MPI_Finalize();
  return status;
}
