// Failures of runs on NCCL, a thread a rank, on the model of CUDA and NCCL:
//
//   ppcc-run-nccl FAULT PROGRAM.JSON...
//
// FAULT is `digest`, or lets the program fail: `throw`, `size`, `no-size`,
// `stall`, `leave`, `unheard` (nobody is reported), `broken` (the communicator
// of rank 1 reports an error), `event` (CUDA does), `away` (rank 0 waits in its
// stage for what never comes), `stuck` (its device does), `held` (likewise, and
// rank 1 is in a call of NCCL).
#include "DeviceNetwork.h"
#include "Faults.h"
#include "MutatedProgram.h"

#include "Inputs/cuda-model/Model.h"

#include <filesystem>
#include <latch>

using namespace test;

namespace {

/// Goes wrong at the first backward of rank 1.
class FaultyDeviceStage : public DeviceStage {
public:
  FaultyDeviceStage(Endpoint &endpoint, std::string fault, ncclComm_t comm,
                    std::latch &gaveUp)
      : DeviceStage(endpoint), fault(std::move(fault)), comm(comm),
        gaveUp(gaveUp) {}

  std::vector<Value> backward(const rt::ActionContext &work,
                              Value *outputGrad) {
    return injectFault(work, DeviceStage::backward(work, outputGrad));
  }
  std::vector<Value> backward_input(const rt::ActionContext &work,
                                    Value *outputGrad) {
    return injectFault(work, DeviceStage::backward_input(work, outputGrad));
  }
  size_t messageBytes(const rt::Label &label) {
    return fault == "no-size" ? 0 : DeviceStage::messageBytes(label);
  }

private:
  std::vector<Value> injectFault(const rt::ActionContext &work,
                                 std::vector<Value> result) {
    if (fault == "away" && work.rank == 0)
      cudaStreamSynchronize(endpoint.stream(0));
    if (work.rank != 1 || std::exchange(failed, true))
      return result;
    if (fault == "throw")
      thrownAt = std::chrono::steady_clock::now();
    if (fault == "throw" || fault == "unheard")
      throw std::runtime_error("out of luck");
    if (fault == "size")
      result.front() = Value(valueBytes + sizeof(double));
    if (fault == "stall")
      model::kernel(endpoint.stream(0), [this] { return gaveUp.try_wait(); });
    if (fault == "broken")
      model::breakComm(comm);
    if (fault == "event")
      model::breakCuda();
    if (fault == "held")
      model::holdMessages();
    if (fault == "away" || fault == "stuck")
      gaveUp.wait();
    return result;
  }

  std::string fault;
  ncclComm_t comm;
  std::latch &gaveUp; ///< Of rank 0.
  bool failed = false;
};

/// The first failure of a run, for all ranks to see.
struct FailureBoard {
  std::mutex mutex;
  std::optional<std::string> text;

  void broadcastFailure(const std::string &cause) {
    std::lock_guard lock(mutex);
    if (!text)
      text = cause;
  }
  std::optional<std::string> peerFailure() {
    std::lock_guard lock(mutex);
    return text;
  }
};

/// Runs `rank(number, communicator, options)` in a thread for each rank.
template <class Rank>
void runRanks(const rt::Program &program, const std::string &fault, Rank rank) {
  FailureBoard alarm;
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  std::vector<std::jthread> threads;
  for (uint32_t number = 0; number != program.numRanks; ++number)
    threads.emplace_back([&, number] {
      model::attachRank(int(number), int(program.numRanks));
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ncclComm_t comm;
      ncclCommInitRankConfig(&comm, int(program.numRanks), id, int(number),
                             &config);
      rt::NcclOptions options;
      options.waitsOnHost =
          fault != "away" && fault != "stuck" && fault != "held";
      if (fault != "unheard") {
        options.broadcastFailure = [&](const std::string &text) {
          alarm.broadcastFailure(text);
        };
        options.peerFailure = [&] { return alarm.peerFailure(); };
      }
      bool good = rank(number, comm, options);
      model::detachRank();
      if (good)
        ncclCommDestroy(comm);
    });
  threads.clear();
  model::takeReports();
}

/// Those of this process.
void sayThreads() {
  auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  std::printf("threads left: %td\n", std::distance(begin(tasks), end(tasks)));
}

void runFaulty(const rt::Program &program, const std::string &fault) {
  std::latch gaveUp(1);
  runRanks(program, fault,
           [&](uint32_t rank, ncclComm_t comm, const rt::NcclOptions &nccl) {
             if (fault == "leave" && rank == 1)
               return true;
             rt::Options options;
             bool waits = fault == "stall" || fault == "away" ||
                          fault == "stuck" || fault == "held";
             options.timeout = timeoutOf(waits ? rank : 0);
             rt::NcclOptions limited = nccl;
             limited.timeout = options.timeout;
             rt::Nccl<DeviceVector> endpoint(comm, limited);
             FaultyDeviceStage stage(endpoint, fault, comm, gaveUp);
             bool good = report(rank, [&] {
               rt::run(program, rank, stage, endpoint, options);
             });
             if (rank == 0)
               gaveUp.count_down();
             return good;
           });
}

/// Gives one rank another program than the others.
void runMutations(const std::vector<std::string> &names) {
  std::atomic<unsigned> refused = 0, all = 0;
  for (unsigned pair = 0; pair != numMutations; ++pair) {
    FaultyProgram loaded("none", names[pair % names.size()]);
    const rt::Program &program = loaded.program();
    MutatedProgram other(program, pair);
    runRanks(program, "digest",
             [&](uint32_t rank, ncclComm_t comm, const rt::NcclOptions &nccl) {
               rt::Nccl<DeviceVector> endpoint(comm, nccl);
               DeviceStage stage(endpoint);
               rt::Session session(program, stage, endpoint);
               bool isMutated = rank == pair % program.numRanks;
               refused += refuses(program, other,
                                  [&] {
                                    session.link(isMutated ? other : program);
                                  }) &&
                          stage.computed().layers().empty();
               ++all;
               session.link(program);
               session.step();
               return true;
             });
  }
  std::printf("%u pairs, refused on %u of %u ranks\n", numMutations,
              refused.load(), all.load());
}

} // namespace

int main(int argc, char **argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 2)
    return 2;
  std::string fault = words[0];
  words.erase(words.begin());
  model::tolerateFaults();
  if (fault == "digest")
    return runMutations(words), 0;
  FaultyProgram program(fault, words[0]);
  runFaulty(program.program(), fault);
  sayThatAllEnded();
  if (fault == "away" || fault == "stuck")
    sayThreads();
}
