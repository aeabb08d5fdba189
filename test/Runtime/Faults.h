// Stages and set-ups that fail in one way each.
#pragma once

#include "Network.h"

#include "ppcc/Runtime/Engine.h"

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

namespace test {

/// A stage that goes wrong at its first backward. `throw`, `throw-int`:
/// rank 1 throws; `size`: its gradient has a number too many; `stall`: it does
/// nothing for a second, which is longer than the others wait; `leave`: it is
/// gone. Other words do nothing.
class FaultyStage : public NetworkStage {
public:
  FaultyStage(std::string fault, void (*leave)())
      : fault(std::move(fault)), leave(leave) {}

  std::vector<Value> backward(const rt::Work &work, Value *outputGrad) {
    std::vector<Value> result = NetworkStage::backward(work, outputGrad);
    if (work.rank != 1 || std::exchange(failed, true))
      return result;
    if (fault == "throw")
      throw std::runtime_error("out of luck");
    if (fault == "throw-int")
      throw 42;
    if (fault == "size")
      result.front().push_back(0);
    if (fault == "stall")
      std::this_thread::sleep_for(std::chrono::seconds(1));
    if (fault == "leave")
      leave();
    return result;
  }

private:
  std::string fault;
  void (*leave)();
  bool failed = false;
};

/// Runs one rank and says how it ended, on one line of standard output.
template <class Endpoint>
bool runOne(const rt::Program &program, uint32_t rank, FaultyStage &stage,
            Endpoint &endpoint, const rt::Options &options) {
  std::string line = "rank " + std::to_string(rank);
  bool good = false;
  try {
    rt::run(program, rank, stage, endpoint, options);
    line += " ended";
    good = true;
  } catch (const rt::Error &error) {
    line += " stopped at `" + error.action() + "` of `" + error.place() +
            "`: " + error.what();
  }
  std::puts(line.c_str());
  std::fflush(stdout);
  return good;
}

} // namespace test
