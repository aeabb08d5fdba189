// The same on MPI: mpirun -np P ppcc-bench-engine-mpi PROGRAM.JSON.
#include "Engine.h"

#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Mpi.h"

#include <fstream>

using namespace bench;

namespace {

/// MPI needs to know the size of what comes.
struct Sized : Idle {
  Value forward(const rt::Work &work, const rt::Inputs<Value> &inputs) {
    return inputs.empty() ? Value(1) : Idle::forward(work, inputs);
  }
  Value backward(const rt::Work &work, Value *gradient) {
    return gradient ? Idle::backward(work, gradient) : Value(1);
  }
  size_t messageBytes(const rt::Label &) { return sizeof(double); }
};

} // namespace

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc != 2)
    MPI_Abort(MPI_COMM_WORLD, 2);
  {
    std::ifstream file(argv[1], std::ios::binary);
    rt::LoadedProgram program = rt::readJson(file);
    rt::Mpi<Value> mpi;
    Sized stage;
    MPI_Barrier(MPI_COMM_WORLD);
    Stopwatch watch;
    rt::run(program.program(), mpi.rank(), stage, mpi);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpi.rank() == 0)
      watch.report("MPI", actionsOf(program));
  }
  MPI_Finalize();
  return 0;
}
