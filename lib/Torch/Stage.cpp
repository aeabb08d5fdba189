#include "ppcc/Torch/Stage.h"

#include "GradientSums.h"
#include "Pack.h"
#include "Saved.h"
#include "Split.h"

#include "ppcc/Runtime/Error.h"

#include <ATen/Context.h>
#include <ATen/ops/add.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/GradMode.h>

#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <set>

using namespace ppcc::rt;

namespace {

/// A stage of a pipe, and with a microbatch the key of what F keeps.
using StageKey = std::pair<uint8_t, uint16_t>;

bool isDifferentiable(const at::Tensor &tensor) {
  return tensor.is_floating_point() || tensor.is_complex();
}

bool sameBytes(const at::Tensor &a, const at::Tensor &b) {
  return a.nbytes() == b.nbytes() &&
         std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

/// What modules on a device draw random numbers from: the host's generator, and
/// that of the device if it is another one. Their states lie on the host.
class Generators {
public:
  explicit Generators(at::Device device) {
    for (at::Device one : {at::Device(at::kCPU), device})
      if (all.empty() || one != at::Device(at::kCPU))
        all.push_back(at::globalContext().defaultGenerator(one));
  }
  Tensors states() const {
    Tensors result;
    for (const at::Generator &generator : all)
      result.push_back(generator.get_state());
    return result;
  }
  void setStates(const Tensors &states) {
    for (size_t i = 0; i != all.size(); ++i)
      all[i].set_state(states[i]);
  }
  void seed(uint64_t seed) {
    for (at::Generator &generator : all)
      generator.set_current_seed(seed);
  }
  bool areAt(const Tensors &states) const {
    Tensors now = this->states();
    return std::equal(now.begin(), now.end(), states.begin(), sameBytes);
  }

private:
  std::vector<at::Generator> all;
};

/// Random numbers that depend on the seed alone, while it lives. LibTorch's
/// modules draw from one generator a process and device, so one at a time.
class Drawing {
public:
  Drawing(at::Device device, uint64_t seed)
      : lock(mutex), generators(device), before(generators.states()) {
    generators.seed(seed);
  }
  ~Drawing() { generators.setStates(before); }
  Drawing(const Drawing &) = delete;
  Drawing &operator=(const Drawing &) = delete;

private:
  inline static std::mutex mutex;
  std::lock_guard<std::mutex> lock;
  Generators generators;
  Tensors before;
};

/// Mixes numbers into one, each of which changes all of it (splitmix64).
uint64_t mix(std::initializer_list<uint64_t> numbers) {
  uint64_t state = 0;
  for (uint64_t number : numbers) {
    state += number + 0x9E3779B97F4A7C15u;
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
    state = (state ^ (state >> 27)) * 0x94D049BB133111EBu;
    state ^= state >> 31;
  }
  return state;
}

/// Whether the matrix products of LibTorch are wrong when threads compute at
/// the same time: so in OpenBLAS's build for one thread, which shares its
/// buffers without a lock.
bool blasWantsOneThread() {
  auto *parallel =
      reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_parallel"));
  auto *config = reinterpret_cast<const char *(*)()>(
      dlsym(RTLD_DEFAULT, "openblas_get_config"));
  return parallel && config && parallel() == 0 &&
         !std::strstr(config(), "USE_LOCKING");
}

/// Counts the computations that run in this process at one time.
class Computing {
public:
  Computing() {
    static const bool wantsOneThread = blasWantsOneThread();
    if (count.fetch_add(1) == 0 || !wantsOneThread)
      return;
    count.fetch_sub(1);
    throw std::runtime_error(
        "OpenBLAS is built for one thread here, and gives wrong results where "
        "several compute: install libopenblas0-pthread, or run a process a "
        "rank");
  }
  ~Computing() { count.fetch_sub(1); }
  Computing(const Computing &) = delete;
  Computing &operator=(const Computing &) = delete;

private:
  inline static std::atomic<int> count = 0;
};

/// Calls `run`, which computes; the errors of LibTorch lose their pages of
/// stack.
template <class Run> auto compute(Run run) {
  Computing computing;
  try {
    return run();
  } catch (const c10::Error &error) {
    std::throw_with_nested(std::runtime_error(error.what_without_backtrace()));
  }
}

/// What F keeps for a microbatch.
struct Activation {
  Tensors inputs;                 ///< Leaves of the graph.
  std::vector<size_t> numTensors; ///< Of each stage that is read.
  Tensors outputs;                ///< Of the last stage: the loss. Until they
                                  ///< are released.
  Roots roots;                    ///< Where the graph begins.
  Tensors outputGrads;            ///< Until W, where I had nothing to do.
  SavedTensors saved;             ///< Where an action moves them.
  DeferredWeights weights;
  bool hasGraph = false, isSplit = false;

  void keepGraph(Tensors &&made) {
    roots = Roots(made);
    saved.keepAlive(inputs);
    outputs = std::move(made);
    hasGraph = true;
  }
};

/// What performs the actions of std.pp.
const std::map<std::string, TorchAction> &knownActions() {
  static const std::map<std::string, TorchAction> all = {
#define TORCH_ACTION(Letters, Function, Role)                                  \
  {#Letters, {&TorchStage::Function, ActionRole::Role}},
#include "Actions.def"
  };
  return all;
}

TorchAction actionFor(const std::string &letters, const TorchOptions &options) {
  if (auto found = options.actions.find(letters);
      found != options.actions.end())
    return found->second;
  if (auto found = knownActions().find(letters); found != knownActions().end())
    return found->second;
  throw Error("the program has an action `" + letters +
              "`, which the stages of LibTorch do not know: name a function "
              "for it in TorchOptions::actions");
}

} // namespace

struct TorchStage::State {
  const Program &program;
  uint32_t rank;
  Network network;
  TorchOptions options;
  double lossWeight = 1;
  std::map<StageKey, StageModule> modules;
  std::vector<Parameter> parameters;
  std::vector<TorchAction> actions; ///< By kind.
  std::shared_ptr<GradientSums> sums;
  uint32_t rankInSums = 0;
  WeightUpdate update;
  Step lastStep = Step::NotYet;
  uint64_t step = 0;

  std::mutex mutex; ///< Of what follows.
  std::map<std::pair<StageKey, uint32_t>, Activation> activations;
  std::map<std::tuple<uint8_t, uint16_t, uint16_t>, TensorsLayout> layouts;
  /// Of other ranks: what autograd saved there.
  std::map<std::pair<StageKey, uint32_t>, Tensors> guests;
  uint32_t peak = 0;
  std::vector<std::pair<uint32_t, at::Tensor>> losses; ///< Not read yet.

  State(const Program &program, uint32_t rank, Network network,
        const TorchOptions &options)
      : program(program), rank(rank), network(std::move(network)),
        options(options) {
    for (const Kind &kind : program.kinds)
      actions.push_back(kind.hasFarEnd()
                            ? TorchAction{{}, ActionRole::MovesSaved}
                        : kind.kindClass == KindClass::Declared
                            ? actionFor(kind.letters, options)
                            : TorchAction());
  }

  bool has(ActionRole role) const {
    return std::any_of(
        actions.begin(), actions.end(),
        [&](const TorchAction &action) { return action.role == role; });
  }

  void keep(const Work &work, Activation &&kept) {
    std::lock_guard lock(mutex);
    activations.insert_or_assign(keyOf(work), std::move(kept));
    peak = std::max(peak, static_cast<uint32_t>(activations.size()));
  }
  /// Null when it has been released.
  Activation *find(const Work &work) {
    std::lock_guard lock(mutex);
    auto found = activations.find(keyOf(work));
    return found == activations.end() ? nullptr : &found->second;
  }
  Activation &activation(const Work &work) {
    if (Activation *found = find(work))
      return *found;
    throw std::runtime_error("what its forward kept has been released");
  }
  /// For what ranks do together.
  GradientSums &needSums() const {
    if (!sums)
      throw std::runtime_error("the stage does not know those of other ranks: "
                               "make SharedWeights of all first");
    return *sums;
  }
  static std::pair<StageKey, uint32_t> keyOf(const Work &work) {
    return {StageKey(work.pipe, work.stage), work.microbatch};
  }
  void ended(const Work &work) const {
    if (options.behindEach)
      options.behindEach(work);
  }
  const StageModule &module(const Work &work) const {
    return modules.at({work.pipe, work.stage});
  }

  /// Runs the module, and behind the last stage the loss.
  Tensors compute(const Work &work, const Tensors &inputs) const {
    return ::compute([&] { return computeLoss(work, inputs); });
  }
  Tensors computeLoss(const Work &work, const Tensors &inputs) const {
    Tensors outputs = module(work).forward(inputs);
    if (!work.isLast())
      return outputs;
    at::Tensor loss = network.loss(outputs, work.microbatch);
    if (loss.numel() != 1)
      throw std::runtime_error("the loss must be one number, but has " +
                               std::to_string(loss.numel()));
    return {loss};
  }

  /// `runsAgain`: it must be possible to do the same once more.
  Tensors draw(const Work &work, const Tensors &inputs, bool runsAgain) const {
    if (options.seed) {
      Drawing drawing(options.device, mix({*options.seed, step, work.pipe,
                                           work.stage, work.microbatch}));
      return compute(work, inputs);
    }
    if (!runsAgain)
      return compute(work, inputs);
    Generators generators(options.device);
    Tensors before = generators.states();
    Tensors outputs = compute(work, inputs);
    if (!generators.areAt(before))
      throw std::runtime_error(
          "the module draws random numbers, and is to run again for the "
          "backward: set TorchOptions::seed");
    return outputs;
  }

  /// The leaf that a tensor becomes in the graph of this stage.
  static at::Tensor leaf(const at::Tensor &tensor, bool needsGrad) {
    if (!tensor.defined())
      return tensor;
    at::Tensor result = tensor.detach();
    if (needsGrad && isDifferentiable(result))
      result.set_requires_grad(true);
    return result;
  }

  /// Runs the module with a graph.
  Tensors graphOf(const Work &work, const Tensors &inputs, bool runsAgain,
                  SavedTensors &saved) const {
    std::optional<SavedTensors::Noting> noting;
    if (has(ActionRole::MovesSaved))
      noting.emplace(saved);
    return draw(work, inputs, runsAgain);
  }
  void makeGraph(const Work &work, Activation &kept) const {
    if (!kept.hasGraph)
      kept.keepGraph(graphOf(work, kept.inputs, false, kept.saved));
  }
  /// For an action of the backward.
  void needGraph(const Work &work, Activation &kept) const {
    if (options.recomputes)
      makeGraph(work, kept);
    if (!kept.hasGraph)
      throw std::runtime_error("its forward kept the inputs alone, and nothing "
                               "has restored the rest");
  }

  // What goes to other ranks in one piece of memory.

  /// Of what goes along an edge, from stage `from`: an output where that comes
  /// first, else a gradient. Null where nobody has given it.
  const TensorsLayout *layoutOf(uint8_t pipe, uint16_t from, uint16_t to) {
    if (!options.shapes)
      return nullptr;
    std::lock_guard lock(mutex);
    auto [found, isNew] = layouts.try_emplace({pipe, from, to});
    if (isNew) {
      bool isGradient = from > to;
      Tensors shapes =
          options.shapes(pipe, std::min(from, to), std::max(from, to));
      for (at::Tensor &shape : shapes)
        if (isGradient && !isDifferentiable(shape))
          shape = at::Tensor();
      found->second = TensorsLayout(shapes);
    }
    return &found->second;
  }
  /// What has come along an edge.
  Tensors opened(Tensors value, uint8_t pipe, uint16_t from, uint16_t to) {
    const TensorsLayout *layout = layoutOf(pipe, from, to);
    return layout && layout->isPacked(value) ? layout->unpack(value[0]).value
                                             : std::move(value);
  }
  /// What is to go along an edge, if it leaves the rank.
  Tensors packed(Tensors value, uint8_t pipe, uint16_t from, uint16_t to) {
    if (program.pipes[pipe].rankOfStage[to] == rank)
      return value;
    const TensorsLayout *layout = layoutOf(pipe, from, to);
    if (!layout)
      return value;
    if (*layout != TensorsLayout(value))
      throw std::runtime_error("it gives stage " + std::to_string(to) + " " +
                               TensorsLayout(value).words() + " where " +
                               layout->words() + " is expected");
    return layout->unpack(layout->pack({}, value)).value;
  }
  /// The stages that a stage reads, ascending, or those that read it.
  std::vector<uint16_t> neighbours(const Work &work, bool readers) const {
    const Pipe &pipe = program.pipes[work.pipe];
    std::set<uint16_t> all;
    for (SkipEdge edge : pipe.skipEdges)
      if ((readers ? edge.from : edge.to) == work.stage)
        all.insert(readers ? edge.to : edge.from);
    if (readers && work.stage + 1u != pipe.numStages() &&
        pipe.hasEdgeToNext(work.stage))
      all.insert(work.stage + 1);
    if (!readers && work.stage != 0 && pipe.hasEdgeToNext(work.stage - 1u))
      all.insert(work.stage - 1);
    return {all.begin(), all.end()};
  }
  /// The gradient of the output, which has come from a reader.
  void openGradient(const Work &work, Tensors *gradient) {
    if (gradient && options.shapes)
      *gradient = opened(std::move(*gradient), work.pipe,
                         neighbours(work, true).front(), work.stage);
  }
  std::vector<Tensors> packGradients(const Work &work,
                                     std::vector<Tensors> &&gradients) {
    if (!options.shapes || work.isFirst())
      return std::move(gradients);
    std::vector<uint16_t> sources = neighbours(work, false);
    for (size_t i = 0; i != gradients.size(); ++i)
      gradients[i] =
          packed(std::move(gradients[i]), work.pipe, work.stage, sources[i]);
    return std::move(gradients);
  }

  /// The gradients for the outputs of a stage; what the loss counts at the
  /// last.
  Tensors outputGrads(const Work &work, const Activation &kept,
                      Tensors *given) const {
    if (given)
      return std::move(*given);
    if (work.isLast())
      return {at::full_like(kept.outputs.front(), lossWeight)};
    return Tensors(kept.roots.size());
  }

  /// The gradients of the inputs, for each stage that was read.
  static std::vector<Tensors> bySource(const Activation &kept,
                                       Tensors &&grads) {
    std::vector<Tensors> result;
    auto next = grads.begin();
    for (size_t count : kept.numTensors) {
      result.emplace_back(std::make_move_iterator(next),
                          std::make_move_iterator(next + count));
      next += count;
    }
    return result;
  }
};

TorchStage::TorchStage(const Program &program, uint32_t rank, Network network,
                       const TorchOptions &options)
    : state(
          std::make_unique<State>(program, rank, std::move(network), options)) {
  uint64_t microbatches = 0;
  for (uint8_t p = 0; p != program.pipes.size; ++p) {
    const Pipe &pipe = program.pipes[p];
    microbatches += pipe.numMicrobatches;
    for (uint32_t s = 0; s != pipe.numStages(); ++s) {
      if (pipe.rankOfStage[s] != rank)
        continue;
      auto stage = static_cast<uint16_t>(s);
      StageModule &module = state->modules[{p, stage}];
      module = state->network.make(p, stage);
      for (const Parameter &parameter : module.parameters)
        state->parameters.push_back(parameter);
    }
  }
  if (options.averagesLosses)
    state->lossWeight = 1 / (double(microbatches) * options.replicas);
}
TorchStage::TorchStage(TorchStage &&) noexcept = default;
TorchStage &TorchStage::operator=(TorchStage &&) noexcept = default;
TorchStage::~TorchStage() = default;

Tensors TorchStage::forward(const Work &work, const Inputs<Tensors> &inputs) {
  bool hasBackward = work.program->hasBackward;
  Activation kept;
  if (work.isFirst())
    for (const at::Tensor &tensor : state->network.input(work.microbatch))
      kept.inputs.push_back(State::leaf(tensor, false));
  std::vector<uint16_t> sources = state->neighbours(work, false);
  for (size_t i = 0; i != inputs.size(); ++i) {
    Tensors input =
        state->opened(inputs.take(i), work.pipe, sources[i], work.stage);
    kept.numTensors.push_back(input.size());
    for (const at::Tensor &tensor : input)
      kept.inputs.push_back(State::leaf(tensor, hasBackward));
  }

  bool runsAgain = state->options.recomputes || work.isRestored;
  bool keepsGraph = hasBackward && !runsAgain;
  c10::AutoGradMode grads(keepsGraph);
  Tensors outputs = keepsGraph
                        ? state->graphOf(work, kept.inputs, false, kept.saved)
                        : state->draw(work, kept.inputs, hasBackward);
  if (work.isLast()) {
    std::lock_guard lock(state->mutex);
    // To read it here would wait for the device.
    state->losses.push_back({work.microbatch, outputs.front().detach()});
  }
  Tensors result;
  if (!work.isLast())
    for (const at::Tensor &tensor : outputs)
      result.push_back(tensor.defined() ? tensor.detach() : tensor);
  if (keepsGraph)
    kept.keepGraph(std::move(outputs));
  outputs.clear();
  if (hasBackward)
    state->keep(work, std::move(kept));
  for (uint16_t reader : state->neighbours(work, true))
    if (state->options.shapes)
      result = state->packed(std::move(result), work.pipe, work.stage, reader);
  state->ended(work);
  return result;
}

std::vector<Tensors> TorchStage::backward(const Work &work,
                                          Tensors *outputGrad) {
  Activation &kept = state->activation(work);
  state->needGraph(work, kept);
  state->openGradient(work, outputGrad);
  Tensors grads = state->outputGrads(work, kept, outputGrad);
  Backward whole{kept.roots, grads, kept.inputs};
  std::vector<Tensors> result = state->packGradients(
      work, State::bySource(kept, ::compute([&] { return whole.whole(); })));
  state->ended(work);
  return result;
}

std::vector<Tensors> TorchStage::backward_input(const Work &work,
                                                Tensors *outputGrad) {
  Activation &kept = state->activation(work);
  state->openGradient(work, outputGrad);
  bool hasWork = false;
  for (const at::Tensor &input : kept.inputs)
    hasWork |= input.defined() && input.requires_grad();
  if (!hasWork) {
    if (outputGrad)
      kept.outputGrads = std::move(*outputGrad);
    state->ended(work);
    return state->packGradients(
        work, State::bySource(kept, Tensors(kept.inputs.size())));
  }
  state->needGraph(work, kept);
  Tensors grads = state->outputGrads(work, kept, outputGrad);
  Tensors result = ::compute(
      [&] { return kept.weights.splitOff({kept.roots, grads, kept.inputs}); });
  kept.isSplit = true;
  kept.roots = Roots();
  kept.outputs.clear();
  kept.saved.release(kept.inputs);
  state->ended(work);
  return state->packGradients(work, State::bySource(kept, std::move(result)));
}

void TorchStage::backward_weight(const Work &work) {
  Activation &kept = state->activation(work);
  if (kept.isSplit) {
    ::compute([&] { kept.weights.run(); });
    return state->ended(work);
  }
  state->needGraph(work, kept);
  Tensors grads = state->outputGrads(
      work, kept, kept.outputGrads.empty() ? nullptr : &kept.outputGrads);
  Backward whole{kept.roots, grads, kept.inputs};
  ::compute([&] { whole.whole(); });
  state->ended(work);
}

void TorchStage::perform(const Work &work) {
  state->actions[work.kind].perform(*this, work);
  state->ended(work);
}

Tensors TorchStage::give(const Work &work) {
  if (!work.hasMicrobatch())
    throw std::runtime_error("the stages of LibTorch move what microbatches "
                             "hold between ranks, and nothing else");
  Tensors moved;
  if (state->modules.contains({work.pipe, work.stage})) {
    offload(work);
    moved = state->activation(work).saved.takeMoved();
  } else {
    std::lock_guard lock(state->mutex);
    auto guest = state->guests.extract(State::keyOf(work));
    if (guest.empty())
      throw std::runtime_error("it has nothing of this to give back");
    moved = std::move(guest.mapped());
  }
  state->ended(work);
  return moved;
}

void TorchStage::take(const Work &work, Tensors &&moved) {
  if (state->modules.contains({work.pipe, work.stage})) {
    state->activation(work).saved.putMoved(std::move(moved));
    reload(work);
  } else {
    std::lock_guard lock(state->mutex);
    state->guests.insert_or_assign(State::keyOf(work), std::move(moved));
  }
  state->ended(work);
}

void TorchStage::recompute(const Work &work) {
  state->makeGraph(work, state->activation(work));
}

void TorchStage::releaseOutput(const Work &work) {
  if (work.isLast())
    throw std::runtime_error("the backward begins with the output of the last "
                             "stage, which is its loss");
  state->activation(work).outputs.clear();
}

void TorchStage::releaseInput(const Work &work) { release(work); }

void TorchStage::offload(const Work &work) {
  Activation &kept = state->activation(work);
  if (!work.isLast())
    kept.outputs.clear();
  Tensors weights;
  for (const Parameter &parameter : state->module(work).parameters)
    weights.push_back(parameter.value);
  kept.saved.moveOut(kept.inputs, weights);
}

void TorchStage::reload(const Work &work) {
  state->activation(work).saved.moveBack();
}

void TorchStage::sumGradients(const Work &work) {
  state->needSums().begin(state->rankInSums, work.pipe, work.stage);
}

void TorchStage::finishSums() {
  if (state->sums)
    state->sums->finish(state->rankInSums);
}

void TorchStage::step(const Work &) {
  if (!state->update.step)
    throw std::runtime_error(
        "there is nothing to move the weights: call TorchStage::setUpdate");
  finishSums();
  if (state->has(ActionRole::ChecksStep))
    state->update.save();
  state->update.step();
  state->lastStep = Step::Done;
}

void TorchStage::validate(const Work &) {
  at::Tensor all; // One question to the device, not one a weight.
  for (const Parameter &parameter : state->parameters)
    if (const at::Tensor &grad = parameter.value.grad(); grad.defined()) {
      at::Tensor one = at::isfinite(grad).all();
      all = all.defined() ? all.logical_and(one) : one;
    }
  bool isFinite = !all.defined() || all.item().toBool();
  if (state->sums || state->program.numRanks != 1)
    isFinite = state->needSums().agree(state->rankInSums, isFinite);
  if (isFinite)
    return;
  if (state->lastStep == Step::Done)
    state->update.restore();
  state->lastStep = Step::TakenBack;
}

void TorchStage::fail(const std::string &text) {
  if (state->sums)
    state->sums->fail(text);
}

size_t TorchStage::messageBytes(const Label &label) {
  const TensorsLayout *layout =
      state->layoutOf(label.pipe, label.from, label.to);
  return layout ? static_cast<size_t>(layout->numBytes()) : 0;
}

void TorchStage::add(const Work &work, Tensors &sum, const Tensors &other) {
  Tensors gradient = other;
  // One layout is that of all readers.
  for (Tensors *one : {&sum, &gradient})
    state->openGradient(work, one);
  if (sum.size() != gradient.size())
    throw std::runtime_error("readers give " + std::to_string(sum.size()) +
                             " and " + std::to_string(gradient.size()) +
                             " gradients of one output");
  for (size_t i = 0; i != sum.size(); ++i)
    if (!sum[i].defined())
      sum[i] = gradient[i];
    else if (gradient[i].defined())
      sum[i] = at::add(sum[i], gradient[i]);
}

void TorchStage::release(const Work &work) {
  std::lock_guard lock(state->mutex);
  state->activations.erase({StageKey(work.pipe, work.stage), work.microbatch});
}

const std::vector<Parameter> &TorchStage::parameters() const {
  return state->parameters;
}

std::vector<Loss> TorchStage::takeLosses() {
  std::vector<Loss> result;
  for (auto &[microbatch, loss] : std::exchange(state->losses, {}))
    result.push_back({microbatch, loss.item().toDouble()});
  return result;
}

void TorchStage::setUpdate(WeightUpdate update) {
  state->update = std::move(update);
}

TorchStage::Step TorchStage::lastStep() const { return state->lastStep; }

const Program &TorchStage::program() const { return state->program; }

uint32_t TorchStage::rank() const { return state->rank; }

const StageModule &TorchStage::module(uint8_t pipe, uint16_t stage) const {
  return state->modules.at({pipe, stage});
}

ActionRole TorchStage::roleOf(uint8_t kind) const {
  return state->actions[kind].role;
}

void TorchStage::setSums(std::shared_ptr<GradientSums> sums, uint32_t rank) {
  state->sums = std::move(sums);
  state->rankInSums = rank;
}

void TorchStage::beginStep() {
  ++state->step;
  state->lastStep = Step::NotYet;
  for (const Parameter &parameter : state->parameters)
    parameter.value.mutable_grad() = at::Tensor();
}

uint32_t TorchStage::takePeak() { return std::exchange(state->peak, 0); }
