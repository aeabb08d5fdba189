// The same on MPI: mpirun -np P ppcc-bench-engine-mpi PROGRAM.JSON.
#include "Engine.h"
#include "HandWritten.h"

#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Mpi.h"

#include <fstream>

using namespace bench;

namespace {

/// MPI needs to know the size of what comes.
struct Sized : NoopStage {
  Value forward(const rt::ActionContext &work,
                const rt::Inputs<Value> &inputs) {
    return inputs.empty() ? Value(1) : NoopStage::forward(work, inputs);
  }
  Value backward(const rt::ActionContext &work, Value *gradient) {
    return gradient ? NoopStage::backward(work, gradient) : Value(1);
  }
  size_t messageBytes(const rt::Label &) { return sizeof(double); }
};

/// MPI_Isend and MPI_Irecv as somebody would write them.
class ByHand {
public:
  byhand::Message receive(uint32_t from) {
    byhand::Message message{0, take()};
    message.value.resize(1);
    MPI_Request request;
    MPI_Irecv(message.value.data(), 1, MPI_DOUBLE, int(from), 0, MPI_COMM_WORLD,
              &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return message;
  }
  void send(uint32_t to, byhand::Message &&message) {
    Sent &sent = ring[next++ % ring.size()];
    end(sent);
    sent.value = std::move(message.value);
    sent.value.resize(1);
    MPI_Isend(sent.value.data(), 1, MPI_DOUBLE, int(to), 0, MPI_COMM_WORLD,
              &sent.request);
  }
  void finish() {
    for (Sent &sent : ring)
      end(sent);
  }

private:
  struct Sent {
    MPI_Request request = MPI_REQUEST_NULL;
    Value value;
  };
  void end(Sent &sent) {
    MPI_Wait(&sent.request, MPI_STATUS_IGNORE);
    if (!sent.value.empty())
      unused.push_back(std::exchange(sent.value, Value()));
  }
  Value take() {
    if (unused.empty())
      return Value();
    Value value = std::move(unused.back());
    unused.pop_back();
    return value;
  }

  std::vector<Sent> ring = std::vector<Sent>(64);
  size_t next = 0;
  std::vector<Value> unused;
};

/// The time of one round of all ranks.
template <class Round> double time(Round round) {
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  round();
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime() - start;
}

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
    rt::Session session(program.program(), stage, mpi);
    double engine = 1e9, byHand = 1e9;
    // In turns, as the machine may be busier at one time than at another.
    std::vector<double> ratios;
    for (int iteration = 0; iteration != 101; ++iteration) {
      double ours = time([&] { session.step(); });
      double theirs = time([&] {
        ByHand network;
        byhand::oneFOneB(
            mpi.rank(), mpi.numRanks(),
            program.program().pipes[0].numMicrobatches,
            [&](uint32_t from) { return network.receive(from); },
            [&](uint32_t to, byhand::Message &&message) {
              network.send(to, std::move(message));
            });
        network.finish();
      });
      engine = std::min(engine, ours);
      byHand = std::min(byHand, theirs);
      ratios.push_back(ours / theirs);
    }
    double actions = double(actionsOf(program));
    if (mpi.rank() == 0)
      std::printf("MPI                      %8.3f s %8.1f ns/action\n"
                  "MPI by hand              %8.3f s %8.1f ns/action\n"
                  "MPI to by hand: %.3f in the median turn, at most 1.05 "
                  "wanted\n",
                  engine, engine / actions * 1e9, byHand,
                  byHand / actions * 1e9, median(ratios));
  }
  MPI_Finalize();
  return 0;
}
