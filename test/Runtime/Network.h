// A small network with real numbers: a layer of tanh a stage, a sample before
// each stage that reads no other, a squared error behind each that is not read.
// Once as a stage of the engine, once as a plain loop.
#pragma once

#include "ppcc/Runtime/Stage.h"

#include <cmath>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace test {

namespace rt = ppcc::rt;
using Vector = std::vector<double>;

inline constexpr size_t width = 4, samples = 2;
inline constexpr size_t valueBytes = width * samples * sizeof(double);
/// Of what NetworkStage gives.
inline constexpr size_t movedBytes = 2 * sizeof(double) + 2 * valueBytes;

/// Numbers between -1 and 1 that depend on the arguments alone.
inline Vector numbers(size_t count, uint64_t seed) {
  Vector result(count);
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (double &value : result) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    value = static_cast<double>(state >> 11) / double(uint64_t(1) << 52) - 1;
  }
  return result;
}

inline Vector sample(uint32_t microbatch) {
  return numbers(width * samples, 1000 + microbatch);
}
inline Vector target(uint32_t microbatch) {
  return numbers(width * samples, 2000000 + microbatch);
}

/// What F keeps.
struct Activation {
  size_t numInputs = 0;
  Vector in, out, delta; ///< delta: the gradient before tanh, from I to W.
};

/// out = tanh(weights * in), where `in` is the sum of all inputs, the i-th
/// divided by i + 1.
struct Layer {
  Vector weights, gradient = Vector(width * width);
  std::vector<uint32_t> order; ///< The microbatches summed into `gradient`.

  explicit Layer(uint64_t seed) : weights(numbers(width * width, seed)) {}

  static double share(size_t input) { return 1.0 / double(input + 1); }

  static void addInput(Vector &in, const Vector &value, size_t input) {
    in.resize(width * samples);
    for (size_t i = 0; i != in.size(); ++i)
      in[i] += share(input) * value[i];
  }

  Vector forward(const Vector &in) const {
    Vector out(width * samples);
    for (size_t n = 0; n != samples; ++n)
      for (size_t o = 0; o != width; ++o) {
        double sum = 0;
        for (size_t i = 0; i != width; ++i)
          sum += weights[o * width + i] * in[n * width + i];
        out[n * width + o] = std::tanh(sum);
      }
    return out;
  }

  /// Fills `delta`; the gradient of each input.
  std::vector<Vector> backwardInput(Activation &kept,
                                    const Vector &outGrad) const {
    kept.delta.resize(width * samples);
    for (size_t i = 0; i != outGrad.size(); ++i)
      kept.delta[i] = outGrad[i] * (1 - kept.out[i] * kept.out[i]);
    Vector in(width * samples);
    for (size_t n = 0; n != samples; ++n)
      for (size_t o = 0; o != width; ++o)
        for (size_t i = 0; i != width; ++i)
          in[n * width + i] +=
              weights[o * width + i] * kept.delta[n * width + o];
    std::vector<Vector> result(kept.numInputs, in);
    for (size_t input = 0; input != kept.numInputs; ++input)
      for (double &value : result[input])
        value *= share(input);
    return result;
  }

  void backwardWeight(const Activation &kept, uint32_t microbatch) {
    for (size_t n = 0; n != samples; ++n)
      for (size_t o = 0; o != width; ++o)
        for (size_t i = 0; i != width; ++i)
          gradient[o * width + i] +=
              kept.delta[n * width + o] * kept.in[n * width + i];
    order.push_back(microbatch);
  }
};

inline void addTo(Vector &sum, const Vector &gradient) {
  for (size_t i = 0; i != sum.size(); ++i)
    sum[i] += gradient[i];
}

inline Vector lossGradient(const Vector &out, uint32_t microbatch) {
  Vector result = out;
  Vector wanted = target(microbatch);
  for (size_t i = 0; i != result.size(); ++i)
    result[i] -= wanted[i];
  return result;
}

/// How many stages a stage reads.
inline size_t numInputs(const rt::ActionContext &work) {
  const rt::Pipe &pipe = work.program->pipes[work.pipe];
  size_t count = work.stage != 0 && pipe.hasEdgeToNext(work.stage - 1u);
  for (rt::SkipEdge edge : pipe.skipEdges)
    count += edge.to == work.stage;
  return count;
}

/// By pipe and stage. A stage that two pipes have is one layer twice.
using Layers = std::map<std::pair<uint8_t, uint16_t>, Layer>;

/// All stages of one rank.
class NetworkStage : public rt::StageHooks {
public:
  using Value = Vector;

  Value forward(const rt::ActionContext &work,
                const rt::Inputs<Value> &inputs) {
    Activation &kept = activation(work);
    kept.numInputs = inputs.size();
    if (work.isFirst())
      kept.in = sample(work.microbatch);
    for (size_t i = 0; i != inputs.size(); ++i)
      Layer::addInput(kept.in, inputs[i], i);
    kept.out = layer(work).forward(kept.in);
    return kept.out;
  }
  std::vector<Value> backward_input(const rt::ActionContext &work,
                                    Value *outputGrad) {
    Activation &kept = activation(work);
    if (kept.out.empty())
      throw std::runtime_error("its activation is not here");
    return layer(work).backwardInput(
        kept,
        outputGrad ? *outputGrad : lossGradient(kept.out, work.microbatch));
  }
  void backward_weight(const rt::ActionContext &work) {
    layer(work).backwardWeight(activation(work), work.microbatch);
  }
  std::vector<Value> backward(const rt::ActionContext &work,
                              Value *outputGrad) {
    std::vector<Value> result = backward_input(work, outputGrad);
    backward_weight(work);
    return result;
  }
  void add(Value &sum, const Value &gradient) { addTo(sum, gradient); }

  size_t messageBytes(const rt::Label &) { return valueBytes; }
  /// What std.pp declares, as a rank without others does it: parameters are
  /// there from UNSHARD on, and gone behind RESHARD.
  void perform(const rt::ActionContext &work) {
    std::string mnemonic = work.mnemonic();
    std::lock_guard lock(mutex);
    Layer &own =
        all.try_emplace({work.pipe, work.stage}, work.stage).first->second;
    Vector &shard = shards[{work.pipe, work.stage}];
    if (mnemonic.starts_with("UNSHARD"))
      own.weights = shard.empty() ? own.weights : std::exchange(shard, {});
    else if (mnemonic.starts_with("RESHARD"))
      shard = std::exchange(own.weights, {});
    else if (mnemonic != "REDUCE_GRAD") // Of one copy.
      throw std::runtime_error("cannot perform " + mnemonic);
  }

  /// An activation goes to another rank, and comes back.
  Value moveOut(const rt::ActionContext &work) {
    std::lock_guard lock(mutex);
    auto kept = activations.extract({work.pipe, work.stage, work.microbatch});
    if (kept.empty())
      throw std::runtime_error("has nothing to give");
    Activation &activation = kept.mapped();
    Vector value{double(activation.numInputs), double(activation.in.size())};
    value.insert(value.end(), activation.in.begin(), activation.in.end());
    value.insert(value.end(), activation.out.begin(), activation.out.end());
    return value;
  }
  void moveIn(const rt::ActionContext &work, Value &&value) {
    std::lock_guard lock(mutex);
    Activation &kept = activations[{work.pipe, work.stage, work.microbatch}];
    auto in = value.begin() + 2, out = in + ptrdiff_t(value[1]);
    kept.numInputs = size_t(value[0]);
    kept.in.assign(in, out);
    kept.out.assign(out, value.end());
  }

  void release(const rt::ActionContext &work) {
    std::lock_guard lock(mutex);
    activations.erase({work.pipe, work.stage, work.microbatch});
  }

  const Layers &layers() const { return all; }
  /// Nothing has been computed.
  void clear() { all.clear(), shards.clear(), activations.clear(); }
  size_t numActivations() const { return activations.size(); }

private:
  Activation &activation(const rt::ActionContext &work) {
    std::lock_guard lock(mutex);
    return activations[{work.pipe, work.stage, work.microbatch}];
  }
  Layer &layer(const rt::ActionContext &work) {
    std::lock_guard lock(mutex);
    Layer &own =
        all.try_emplace({work.pipe, work.stage}, work.stage).first->second;
    if (own.weights.empty())
      throw std::runtime_error("its parameters are given up");
    return own;
  }

  std::mutex mutex; ///< Members of a group may run at the same time.
  Layers all;
  std::map<std::pair<uint8_t, uint16_t>, Vector> shards;
  std::map<std::tuple<uint8_t, uint16_t, uint32_t>, Activation> activations;
};

/// The gradients by a plain loop: one microbatch after another, no pipeline.
inline Layers unpipelinedReference(const rt::Program &program) {
  Layers layers;
  for (uint8_t p = 0; p != program.pipes.size; ++p) {
    const rt::Pipe &pipe = program.pipes[p];
    uint16_t stages = static_cast<uint16_t>(pipe.numStages());
    std::vector<std::vector<uint16_t>> sources(stages);
    for (uint16_t stage = 0; stage != stages; ++stage) {
      layers.try_emplace({p, stage}, stage);
      for (const rt::SkipEdge &edge : pipe.skipEdges)
        if (edge.to == stage)
          sources[stage].push_back(edge.from);
      if (stage != 0 && pipe.hasEdgeToNext(stage - 1u))
        sources[stage].push_back(static_cast<uint16_t>(stage - 1));
    }
    uint32_t end = pipe.firstMicrobatch + pipe.numMicrobatches;
    for (uint32_t m = pipe.firstMicrobatch; m != end; ++m) {
      std::vector<Activation> kept(stages);
      for (uint16_t stage = 0; stage != stages; ++stage) {
        if (sources[stage].empty())
          kept[stage].in = sample(m);
        kept[stage].numInputs = sources[stage].size();
        for (size_t i = 0; i != sources[stage].size(); ++i)
          Layer::addInput(kept[stage].in, kept[sources[stage][i]].out, i);
        kept[stage].out = layers.at({p, stage}).forward(kept[stage].in);
      }
      if (!program.hasBackward)
        continue;
      std::vector<std::vector<Vector>> grads(stages); // Of its output.
      for (uint16_t stage = stages; stage-- != 0;) {
        if (!pipe.hasReaders(stage))
          grads[stage] = {lossGradient(kept[stage].out, m)};
        // They were found from the last reader to the first.
        Vector sum = grads[stage].back();
        for (size_t i = grads[stage].size() - 1; i-- != 0;)
          addTo(sum, grads[stage][i]);
        Layer &layer = layers.at({p, stage});
        std::vector<Vector> given = layer.backwardInput(kept[stage], sum);
        layer.backwardWeight(kept[stage], m);
        for (size_t i = 0; i != given.size(); ++i)
          grads[sources[stage][i]].push_back(given[i]);
      }
    }
  }
  return layers;
}

} // namespace test
