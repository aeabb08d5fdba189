// Runs a program on MPI with real numbers, one process a rank:
//
//   mpirun -np P ppcc-run-mpi FAULT PROGRAM.JSON
//
// FAULT is `none`, `wait-here`, `any-size`, or one of Faults.h.
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
