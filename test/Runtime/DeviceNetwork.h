// The network of Network.h as a stage whose work is issued to CUDA streams and
// runs there later.
#pragma once

#include "Network.h"

#include "ppcc/Runtime/Nccl.h"

#include <cstring>
#include <functional>

namespace test {

/// Numbers on the device, in memory that the model does not watch. What is
/// issued keeps them alive; copies share them.
class DeviceVector {
public:
  DeviceVector() = default;
  explicit DeviceVector(size_t bytes) { resize(bytes); }

  std::byte *data() const { return memory.get(); }
  size_t size() const { return bytes; }
  void resize(size_t count) {
    if (count == bytes)
      return;
    memory.reset(new std::byte[count], std::default_delete<std::byte[]>());
    bytes = count;
  }

  /// To be called where the work runs.
  Vector read() const {
    Vector result(bytes / sizeof(double));
    if (bytes != 0)
      std::memcpy(result.data(), data(), bytes);
    return result;
  }
  void write(const Vector &values) const {
    std::memcpy(data(), values.data(), bytes);
  }

private:
  std::shared_ptr<std::byte> memory;
  size_t bytes = 0;
};

} // namespace test

template <> struct ppcc::rt::Bytes<test::DeviceVector> {
  static std::span<std::byte> of(test::DeviceVector &value) {
    return {value.data(), value.size()};
  }
  static bool resize(test::DeviceVector &value, size_t bytes) {
    value.resize(bytes);
    return true;
  }
};

namespace test {

/// Issues what NetworkStage computes.
class DeviceStage : public rt::StageHooks {
public:
  using Value = DeviceVector;
  using Endpoint = rt::Nccl<DeviceVector>;

  explicit DeviceStage(Endpoint &endpoint) : endpoint(endpoint) {}

  Value forward(const rt::ActionContext &work,
                const rt::Inputs<Value> &inputs) {
    Value out(valueBytes);
    std::vector<Value> read;
    for (size_t i = 0; i != inputs.size(); ++i)
      read.push_back(inputs[i]);
    issue(work.lane, [this, work, out, read] {
      std::vector<rt::ValueCell<Vector>> held(read.size());
      std::vector<rt::ValueCell<Vector> *> pointers;
      for (size_t i = 0; i != read.size(); ++i) {
        held[i].value = read[i].read();
        pointers.push_back(&held[i]);
      }
      out.write(network.forward(work, rt::Inputs<Vector>(pointers)));
    });
    return out;
  }
  std::vector<Value> backward_input(const rt::ActionContext &work,
                                    Value *outputGrad) {
    return gradients(work, outputGrad, &NetworkStage::backward_input);
  }
  std::vector<Value> backward(const rt::ActionContext &work,
                              Value *outputGrad) {
    return gradients(work, outputGrad, &NetworkStage::backward);
  }
  void backward_weight(const rt::ActionContext &work) {
    issue(work.lane, [this, work] { network.backward_weight(work); });
  }
  void add(const rt::ActionContext &work, Value &sum, const Value &gradient) {
    issue(work.lane, [sum, gradient] {
      Vector both = sum.read();
      addTo(both, gradient.read());
      sum.write(both);
    });
  }
  size_t messageBytes(const rt::Label &) { return valueBytes; }
  size_t moveBytes(const rt::Label &) { return movedBytes; }
  void perform(const rt::ActionContext &work) {
    issue(work.lane, [this, work] { network.perform(work); });
  }
  Value moveOut(const rt::ActionContext &work) {
    Value moved(movedBytes);
    issue(work.lane,
          [this, work, moved] { moved.write(network.moveOut(work)); });
    return moved;
  }
  void moveIn(const rt::ActionContext &work, Value &&moved) {
    issue(work.lane,
          [this, work, moved] { network.moveIn(work, moved.read()); });
  }
  void release(const rt::ActionContext &work) {
    issue(0, [this, work] { network.release(work); });
  }

  /// What was computed, once the run has ended.
  const NetworkStage &computed() const { return network; }

protected:
  /// Lets a stream call a function.
  void issue(uint16_t lane, std::function<void()> function) {
    auto call = [](void *data) {
      std::unique_ptr<std::function<void()>> owned(
          static_cast<std::function<void()> *>(data));
      (*owned)();
    };
    cudaLaunchHostFunc(endpoint.stream(lane), call,
                       new std::function<void()>(std::move(function)));
  }

  Endpoint &endpoint;

private:
  using Backward = std::vector<Vector> (NetworkStage::*)(
      const rt::ActionContext &, Vector *);

  std::vector<Value> gradients(const rt::ActionContext &work, Value *outputGrad,
                               Backward backward) {
    std::vector<Value> result;
    for (size_t i = numInputs(work); i != 0; --i)
      result.emplace_back(valueBytes);
    bool isLast = !outputGrad;
    Value gradient = isLast ? Value() : *outputGrad;
    issue(work.lane, [this, work, isLast, gradient, result, backward] {
      Vector values = gradient.read();
      auto found = (network.*backward)(work, isLast ? nullptr : &values);
      for (size_t i = 0; i != result.size(); ++i)
        result[i].write(found[i]);
    });
    return result;
  }
  NetworkStage network;
};

} // namespace test
