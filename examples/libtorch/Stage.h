// Stages of LibTorch for ppcc's engine: a thin adapter, to be changed.
//
// F runs a module on leaves of its own and keeps the graph. B runs the whole
// graph backward; I and W run parts of it (Split.h). An edge carries one
// tensor.
//
// On a device: the engine's transport orders its messages with streams of its
// own (Nccl::stream), and knows nothing of the streams of LibTorch. So every
// call of the stage computes on the stream that `Network::stream` gives for the
// lane of the action. Autograd runs a backward on the streams of its forward,
// and lets the current one wait for these at the end. The thread of a rank has
// stream(0) as its current one (c10::StreamGuard) while it makes and runs a
// Session, so that the memory of messages comes from there: docs/runtime.md.
#pragma once

#include "Split.h"

#include "ppcc/Runtime/Error.h"
#include "ppcc/Runtime/Stage.h"

#include <c10/core/StreamGuard.h>
#include <torch/types.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

namespace example {

/// The network to train. The functions may be called at the same time for
/// several microbatches.
struct Network {
  /// The module of a stage, with autograd: from the outputs of the stages that
  /// it reads, by stage, or from the model's input.
  std::function<at::Tensor(uint8_t pipe, uint16_t stage, const Tensors &inputs)>
      module;
  /// What a stage reads that no other feeds.
  std::function<at::Tensor(uint8_t pipe, uint32_t microbatch)> input;
  /// One number, from what a last stage gives.
  std::function<at::Tensor(uint8_t pipe, uint32_t microbatch,
                           const at::Tensor &output)>
      loss;
  /// The output of a stage, as a tensor without values (torch::kMeta will do):
  /// for transports that carry bytes, such as Nccl and Mpi.
  std::function<at::Tensor(uint8_t pipe, uint16_t stage)> shape;
  /// Where a lane computes: that of Nccl::stream(lane), for example by
  /// c10::cuda::getStreamFromExternal. Leave it out on the CPU.
  std::function<c10::Stream(uint16_t lane)> stream;
};

/// The stages of one rank. Gradients of the sum of the losses are added to
/// grad() of the parameters. A weight that several stages have, such as that of
/// a stage of two pipes, has a gradient in each: sum them after the step.
class TorchStage : public ppcc::rt::StageHooks {
public:
  using Value = at::Tensor;
  using ActionContext = ppcc::rt::ActionContext;

  TorchStage(const ppcc::rt::Program &program, Network network)
      : network(std::move(network)) {
    // Gradients would be wrong, without an error.
    for (const ppcc::rt::Pipe &pipe : program.pipes)
      if (pipe.slices != 1)
        throw ppcc::rt::Error("the microbatches of the program are slices of "
                              "sequences, and the stage takes whole ones");
  }

  at::Tensor forward(const ActionContext &work,
                     const ppcc::rt::Inputs<at::Tensor> &received) {
    c10::OptionalStreamGuard guard = useStream(work);
    bool hasBackward = work.program->hasBackward;
    c10::AutoGradMode mode(hasBackward);
    Tensors inputs;
    for (uint16_t from :
         ppcc::rt::neighbours(work.program->pipes[work.pipe], work.stage,
                              /*readers=*/false)) {
      at::Tensor leaf =
          unpack(received.take(inputs.size()), work.pipe, from).detach();
      leaf.set_requires_grad(hasBackward && leaf.is_floating_point());
      inputs.push_back(std::move(leaf));
    }
    at::Tensor output = network.module(
        work.pipe, work.stage,
        work.isFirst() ? Tensors{network.input(work.pipe, work.microbatch)}
                       : inputs);
    at::Tensor lossGrad;
    if (work.isLast()) {
      output = network.loss(work.pipe, work.microbatch, output);
      lossGrad = at::ones_like(output);
    }
    at::Tensor result = output.detach().contiguous();
    std::lock_guard lock(*mutex);
    if (work.isLast()) // To read it here would wait for the device.
      losses.emplace_back(work.microbatch, result);
    if (hasBackward)
      activations.insert_or_assign(
          keyOf(work), Activation{Backward(output, std::move(inputs)),
                                  std::move(lossGrad),
                                  {}});
    return result;
  }

  Tensors backward(const ActionContext &work, at::Tensor *outputGrad) {
    c10::OptionalStreamGuard guard = useStream(work);
    Activation &kept = activation(work);
    return kept.graph.runFull(gradient(work, kept, outputGrad));
  }
  Tensors backward_input(const ActionContext &work, at::Tensor *outputGrad) {
    c10::OptionalStreamGuard guard = useStream(work);
    Activation &kept = activation(work);
    return kept.graph.runInputs(gradient(work, kept, outputGrad));
  }
  void backward_weight(const ActionContext &work) {
    c10::OptionalStreamGuard guard = useStream(work);
    activation(work).graph.runWeights();
  }

  /// Sums the gradients of several readers. Not in place: autograd may give one
  /// tensor to several stages.
  void add(const ActionContext &work, at::Tensor &sum,
           const at::Tensor &gradient) {
    c10::OptionalStreamGuard guard = useStream(work);
    at::Tensor total = unpack(sum, work.pipe, work.stage) +
                       unpack(gradient, work.pipe, work.stage);
    activation(work).summands.push_back(std::exchange(sum, total));
  }

  size_t messageBytes(const ppcc::rt::Label &label) {
    bool isOutput = label.slot == ppcc::rt::slot::Output;
    return network.shape
               ? network.shape(label.pipe, isOutput ? label.from : label.to)
                     .nbytes()
               : 0;
  }
  void release(const ActionContext &work) {
    std::lock_guard lock(*mutex);
    activations.erase(keyOf(work));
  }

  std::vector<std::pair<uint32_t, at::Tensor>> losses; ///< With microbatches.

protected:
  c10::OptionalStreamGuard useStream(const ActionContext &work) const {
    return network.stream ? c10::OptionalStreamGuard(network.stream(work.lane))
                          : c10::OptionalStreamGuard();
  }

private:
  using Key = std::tuple<uint8_t, uint16_t, uint32_t>;
  struct Activation {
    Backward graph;
    at::Tensor lossGrad; ///< Of a last stage.
    Tensors summands;    ///< Until the lane that has read them is joined.
  };

  static Key keyOf(const ActionContext &work) {
    return {work.pipe, work.stage, work.microbatch};
  }
  Activation &activation(const ActionContext &work) {
    std::lock_guard lock(*mutex);
    return activations.at(keyOf(work));
  }
  at::Tensor gradient(const ActionContext &work, const Activation &kept,
                      const at::Tensor *given) const {
    return given ? unpack(*given, work.pipe, work.stage) : kept.lossGrad;
  }
  /// The output of a stage or its gradient, which may have come as bytes.
  at::Tensor unpack(const at::Tensor &value, uint8_t pipe,
                    uint16_t stage) const {
    if (!network.shape)
      return value;
    at::Tensor like = network.shape(pipe, stage);
    return value.view(like.scalar_type()).view(like.sizes());
  }

  Network network;
  /// Of what follows, and of the losses. On the heap, as stages are moved.
  std::unique_ptr<std::mutex> mutex = std::make_unique<std::mutex>();
  std::map<Key, Activation> activations;
};

} // namespace example

/// For transports that carry bytes.
template <> struct ppcc::rt::Bytes<at::Tensor> {
  /// Where this thread receives; it must be set.
  inline static thread_local std::optional<at::Device> device;

  static std::span<std::byte> of(const at::Tensor &value) {
    if (!value.defined())
      return {};
    if (!value.is_contiguous())
      throw std::runtime_error("a tensor to be sent is not contiguous");
    return {static_cast<std::byte *>(value.data_ptr()), value.nbytes()};
  }
  /// In new memory: autograd may have saved what was sent.
  static bool resize(at::Tensor &value, size_t bytes) {
    if (!device)
      throw std::runtime_error("set Bytes<at::Tensor>::device in this thread");
    value = at::empty({static_cast<int64_t>(bytes)},
                      at::TensorOptions(at::kByte).device(*device));
    return true;
  }
};
