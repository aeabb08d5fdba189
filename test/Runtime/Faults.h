// Stages and set-ups that fail in one way each.
#pragma once

#include "Network.h"

#include "ppcc/Runtime/Engine.h"
#include "ppcc/Runtime/Json.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

namespace test {

/// When a stage threw, once it has.
inline std::optional<std::chrono::steady_clock::time_point> thrownAt;

/// To be called when all threads have ended: far below what a rank waits for
/// a message, however busy the machine.
inline void sayThatAllEnded() {
  bool isLate = thrownAt && std::chrono::steady_clock::now() - *thrownAt >
                                std::chrono::seconds(10);
  std::printf("all threads ended%s\n", !thrownAt ? ""
                                       : isLate  ? ", too late"
                                                 : " within 10 s");
}

/// A stage that goes wrong at its first backward. `throw`, `throw-int`:
/// rank 1 throws; `size`: its gradient has a number too many; `stall`, `leave`:
/// it calls `act`, which comes back when the others have given up, or never.
/// Other words do nothing.
class FaultyStage : public NetworkStage {
public:
  explicit FaultyStage(std::string fault = "throw",
                       std::function<void()> act = {})
      : fault(std::move(fault)), act(std::move(act)) {}

  std::vector<Value> backward(const rt::ActionContext &work,
                              Value *outputGrad) {
    return injectFault(work, NetworkStage::backward(work, outputGrad));
  }
  std::vector<Value> backward_input(const rt::ActionContext &work,
                                    Value *outputGrad) {
    return injectFault(work, NetworkStage::backward_input(work, outputGrad));
  }

private:
  std::vector<Value> injectFault(const rt::ActionContext &work,
                                 std::vector<Value> result) {
    if (work.rank != 1 || std::exchange(failed, true))
      return result;
    if (fault.starts_with("throw"))
      thrownAt = std::chrono::steady_clock::now();
    if (fault == "throw")
      throw std::runtime_error("out of luck");
    if (fault == "throw-int")
      throw 42;
    if (fault == "size")
      result.front().push_back(0);
    if (fault == "stall" || fault == "leave")
      act();
    return result;
  }

  std::string fault;
  std::function<void()> act;
  bool failed = false;
};

/// The limit of a rank's waits while rank 1 stalls, which is to hear that the
/// others have given up.
inline std::chrono::milliseconds timeoutOf(uint32_t rank) {
  return rank == 1 ? rt::Options().timeout : std::chrono::milliseconds(1000);
}

/// Reads a program, and damages it. `abi`: it is of another ABI; `cut`: half of
/// the file is missing; `stage`: a row of rank 1 is of a stage that nobody has;
/// `order`: rank 1 receives its second message first. Other words do nothing.
class FaultyProgram {
public:
  FaultyProgram(const std::string &fault, const std::string &name) {
    std::ifstream file(name);
    std::string text(std::istreambuf_iterator<char>(file), {});
    if (fault == "cut")
      text.resize(text.size() / 2);
    loaded = rt::readJson(text);
    damaged = loaded.program();
    damaged.abi += fault == "abi";
    if (fault == "stage" || fault == "order")
      damageRank(fault);
  }
  const rt::Program &program() const { return damaged; }

private:
  void damageRank(const std::string &fault) {
    ranks.assign(damaged.ranks.begin(), damaged.ranks.end());
    std::vector<uint32_t *> received; // The microbatches.
    for (uint64_t i = 0; i != ranks[1].numRows(); ++i)
      rows.push_back(ranks[1].row(i));
    for (rt::Row &row : rows)
      if (damaged.kinds[row.kind].kindClass == rt::KindClass::Recv)
        received.push_back(&row.microbatch);
    if (fault == "stage")
      rows[3].stage = 99;
    else
      std::swap(*received[0], *received[1]);
    ranks[1].rows = {rows.data(), rows.size()};
    damaged.ranks = {ranks.data(), ranks.size()};
  }

  rt::LoadedProgram loaded;
  std::vector<rt::Row> rows;
  std::vector<rt::RankProgram> ranks;
  rt::Program damaged{};
};

/// Does what a rank does and says how it ended, on one line of standard output.
template <class Run> bool report(uint32_t rank, Run run) {
  std::string line = "rank " + std::to_string(rank);
  bool good = false;
  try {
    run();
    line += " ended";
    good = true;
  } catch (const rt::Error &error) {
    line += " stopped at `" + error.action() + "` of `" + error.location() +
            "`: " + error.what();
  }
  std::puts(line.c_str());
  std::fflush(stdout);
  return good;
}

} // namespace test
