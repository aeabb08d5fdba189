// A stage that shows whether the members of groups run at the same time.
#pragma once

#include "CompareRuns.h"

#include <condition_variable>

namespace test {

/// Each member of an overlap group begins, and ends when all members have
/// begun: in turn they would wait for ever. Throws when they do for longer than
/// `timeout`.
class ConcurrentStage : public NetworkStage {
public:
  static inline std::chrono::milliseconds timeout{10'000};

  Value forward(const rt::ActionContext &work,
                const rt::Inputs<Value> &inputs) {
    arriveAndWait(work);
    return NetworkStage::forward(work, inputs);
  }
  std::vector<Value> backward(const rt::ActionContext &work,
                              Value *outputGrad) {
    arriveAndWait(work);
    return NetworkStage::backward(work, outputGrad);
  }
  std::vector<Value> backward_input(const rt::ActionContext &work,
                                    Value *outputGrad) {
    arriveAndWait(work);
    return NetworkStage::backward_input(work, outputGrad);
  }
  void backward_weight(const rt::ActionContext &work) {
    arriveAndWait(work);
    NetworkStage::backward_weight(work);
  }

  /// Groups whose members met.
  size_t numConcurrentGroups() const { return concurrentGroups; }

private:
  using Member = std::tuple<uint8_t, uint8_t, uint16_t, uint32_t>;

  void arriveAndWait(const rt::ActionContext &work) {
    std::unique_lock lock(mutex);
    findGroups(work);
    size_t group = groupOf[{work.kind, work.pipe, work.stage, work.microbatch}];
    size_t size = sizes[group];
    if (size == 1)
      return;
    if (++begun[group] == size) {
      ++concurrentGroups;
      changed.notify_all();
    } else if (!changed.wait_for(lock, timeout,
                                 [&] { return begun[group] == size; })) {
      throw std::runtime_error("the other members of the group do not run");
    }
  }

  /// The groups of the rank, by their members.
  void findGroups(const rt::ActionContext &work) {
    if (!sizes.empty())
      return;
    for (const rt::Row &row : flatRows(work.program->ranks[work.rank])) {
      if (!row.joined())
        sizes.push_back(0);
      ++sizes.back();
      groupOf[{row.kind, row.pipe, row.stage, row.microbatch}] =
          sizes.size() - 1;
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::map<Member, size_t> groupOf;
  std::vector<size_t> sizes;
  std::map<size_t, size_t> begun;
  size_t concurrentGroups = 0;
};

} // namespace test
