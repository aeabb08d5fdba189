#include "ppcc/Torch/SharedWeights.h"

#include "GradientSums.h"
#include "Places.h"

#include "ppcc/Runtime/Error.h"

#include <ATen/ops/add.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>
#include <sstream>

using namespace ppcc::rt;
using std::chrono::milliseconds;

namespace {

/// In the order of the list; undefined where none has a gradient.
at::Tensor sumOf(const std::vector<at::Tensor> &grads) {
  at::Tensor sum;
  for (const at::Tensor &grad : grads)
    if (grad.defined())
      sum = sum.defined() ? at::add(sum, grad) : grad;
  return sum;
}

/// The gradients of a place, by the name of the weight; undefined where it has
/// none.
using Grads = std::map<std::string, at::Tensor>;

/// A stage of this process that has shared weights.
struct OwnPlace {
  Place place;
  std::map<std::string, std::vector<at::Tensor>> weights;
  uint64_t numActions = 0; ///< That sum its gradients, in a step.
  uint64_t numBegun = 0;
  bool isHandedOver = false;

  Grads grads() const {
    Grads result;
    for (const auto &[name, tensors] : weights) {
      std::vector<at::Tensor> all;
      for (const at::Tensor &tensor : tensors)
        all.push_back(tensor.grad());
      result[name] = sumOf(all);
    }
    return result;
  }
  void take(const Grads &sums) const {
    for (const auto &[name, tensors] : weights)
      for (const at::Tensor &tensor : tensors) {
        const at::Tensor &sum = sums.at(name);
        tensor.mutable_grad() =
            sum.defined() ? sum.clone() : at::zeros_like(tensor);
      }
  }
};

/// Calls `run`; what goes wrong in it becomes an Error.
template <class Run>
void asError(uint32_t rank, milliseconds patience, Run run) {
  constexpr const char *what = "the sum of shared weights";
  try {
    run();
  } catch (const Error &) {
    throw;
  } catch (const TimedOut &) {
    throw Error(rank, what, "",
                "has waited " + std::to_string(patience.count()) + " ms");
  } catch (const PeerFailed &failure) {
    throw PeerError(rank, what, "", failure.text);
  } catch (const std::exception &error) {
    throw Error(rank, what, "", error.what());
  }
}

uint32_t replicasOf(const TorchStage &stage, size_t numRanks) {
  uint32_t ofProgram = stage.program().numRanks;
  if (numRanks % ofProgram != 0)
    throw Error("the program is for " + std::to_string(ofProgram) +
                " ranks, of which " + std::to_string(numRanks) +
                " are no whole number of replicas");
  return static_cast<uint32_t>(numRanks / ofProgram);
}

} // namespace

/// What threads and processes have in common: which place hands what over when.
class SharedWeights::Impl : public GradientSums {
public:
  explicit Impl(milliseconds patience) : patience(patience) {}

  void begin(uint32_t rank, uint8_t pipe, uint16_t stage) override {
    for (OwnPlace &own : ownPlaces(rank))
      if (own.place.pipe == pipe && own.place.stage == stage &&
          ++own.numBegun == own.numActions)
        handOver(own);
  }
  void finish(uint32_t rank) override {
    if (isFinished(rank))
      return;
    handOverAll(rank);
    Grads sums = collect(rank);
    for (OwnPlace &own : ownPlaces(rank))
      own.take(sums);
    setFinished(rank);
  }

  bool owns(uint32_t rank, const std::string &name) const override {
    auto found = places.find(name);
    return found == places.end() || found->second.front().rank == rank;
  }

  /// Behind a step: what it has not done, and ready for the next.
  virtual void endStep() = 0;
  /// Of what the stages of this process say, the sum over all processes.
  virtual double totalOfProcesses(double value) = 0;

  const Places &allPlaces() const { return places; }

protected:
  /// Keeps the weights of a stage that have several places.
  void addOwn(const TorchStage &stage, uint32_t rank) {
    auto counts = countSums(stage);
    std::vector<OwnPlace> &all = own[rank];
    for (const auto &[key, module] : stage.modules()) {
      OwnPlace place{{rank, key.first, key.second}, {}, counts[key]};
      for (const Parameter &parameter : module.parameters)
        if (places.contains(parameter.name))
          place.weights[parameter.name].push_back(parameter.value);
      if (!place.weights.empty())
        all.push_back(std::move(place));
    }
  }
  std::vector<OwnPlace> &ownPlaces(uint32_t rank) { return own.at(rank); }

  void handOver(OwnPlace &place) {
    place.isHandedOver = true;
    give(place.place, place.grads());
  }
  void handOverAll(uint32_t rank) {
    for (OwnPlace &place : ownPlaces(rank))
      if (!place.isHandedOver)
        handOver(place);
  }
  void begin(uint32_t rank) {
    for (OwnPlace &place : ownPlaces(rank)) {
      place.numBegun = 0;
      place.isHandedOver = false;
    }
    finished.at(rank) = false;
  }

  bool isFinished(uint32_t rank) const { return finished.at(rank); }
  void setFinished(uint32_t rank) { finished.at(rank) = true; }

  /// Gives the gradients of a place to whoever sums them. Does not wait.
  virtual void give(Place place, Grads &&grads) = 0;
  /// The sums of all weights of a rank. Waits for other ranks.
  virtual Grads collect(uint32_t rank) = 0;

  milliseconds patience;
  Places places;
  std::map<uint32_t, std::vector<OwnPlace>> own; ///< By rank.
  std::map<uint32_t, char> finished;             ///< A thread a rank writes.
};

/// Each rank sums what all have laid on one table.
class SharedWeights::Threads : public SharedWeights::Impl {
public:
  Threads(std::span<TorchStage> stages, milliseconds patience)
      : Impl(patience), numRanks(static_cast<uint32_t>(stages.size())) {
    PlaceFinder finder;
    for (uint32_t rank = 0; rank != numRanks; ++rank)
      for (const auto &[key, module] : stages[rank].modules())
        for (const Parameter &parameter : module.parameters)
          finder.add({rank, key.first, key.second}, parameter.name,
                     describe(parameter.value));
    places = finder.shared();
    if (numRanks != 0) {
      replicasOf(stages.front(), numRanks);
      checkSums(stages.front(), places);
    }
    for (uint32_t rank = 0; rank != numRanks; ++rank) {
      addOwn(stages[rank], rank);
      finished[rank] = false;
    }
  }

  void endStep() override {
    for (uint32_t rank = 0; rank != numRanks; ++rank)
      asError(rank, patience, [&] {
        if (!isFinished(rank))
          handOverAll(rank);
      });
    for (uint32_t rank = 0; rank != numRanks; ++rank)
      asError(rank, patience, [&] { finish(rank); });
    for (uint32_t rank = 0; rank != numRanks; ++rank)
      begin(rank);
    table.clear();
  }

  double total(uint32_t rank, double value) override {
    std::unique_lock lock(mutex);
    uint64_t round = votes++ / numRanks;
    std::vector<double> &all = said[round % 2];
    all.resize(numRanks);
    all[rank] = value;
    changed.notify_all();
    wait(lock, [&] { return votes / numRanks > round; });
    return std::accumulate(all.begin(), all.end(), 0.0);
  }
  double totalOfProcesses(double value) override { return value; }

  void fail(const std::string &text) override {
    std::lock_guard lock(mutex);
    if (failure.empty())
      failure = text;
    changed.notify_all();
  }

private:
  void give(Place place, Grads &&grads) override {
    std::lock_guard lock(mutex);
    table[place] = std::move(grads);
    changed.notify_all();
  }

  Grads collect(uint32_t rank) override {
    std::map<std::string, std::vector<at::Tensor>> all;
    {
      std::unique_lock lock(mutex);
      for (const OwnPlace &own : ownPlaces(rank))
        for (const auto &[name, weights] : own.weights)
          all[name];
      for (auto &[name, grads] : all)
        for (Place place : places.at(name)) {
          wait(lock, [&] { return table.contains(place); });
          grads.push_back(table[place][name]);
        }
    }
    Grads sums;
    for (const auto &[name, grads] : all)
      sums[name] = sumOf(grads);
    return sums;
  }

  template <class Done>
  void wait(std::unique_lock<std::mutex> &lock, Done done) {
    if (!changed.wait_for(lock, patience,
                          [&] { return done() || !failure.empty(); }))
      throw TimedOut();
    if (!done())
      throw PeerFailed{failure};
  }

  const uint32_t numRanks;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Place, Grads> table;
  uint64_t votes = 0;
  std::vector<double> said[2]; ///< By rank, in this round and the one before.
  std::string failure;         ///< Of the first rank that failed.
};

/// The lowest rank of those that have a weight sums it.
class SharedWeights::Processes : public SharedWeights::Impl {
public:
  Processes(TorchStage &stage, C10d &network, milliseconds patience)
      : Impl(patience), network(network), rank(network.rank()) {
    asError(rank, patience, [&] { meet(stage); });
  }

  void endStep() override {
    asError(rank, patience, [&] {
      finish(rank);
      network.finish(patience);
    });
    begin(rank);
  }

  double total(uint32_t, double value) override {
    constexpr uint32_t first = 0;
    auto tell = [&](uint32_t to) {
      network.sendAside(to, {{}, {at::full({1}, value, at::kDouble)}});
    };
    auto heard = [&](uint32_t from) {
      return network.receiveAside(from, patience).value.at(0).item().toDouble();
    };
    if (rank != first) {
      tell(first);
      return heard(first);
    }
    for (uint32_t other = 1; other != network.numRanks(); ++other)
      value += heard(other);
    for (uint32_t other = 1; other != network.numRanks(); ++other)
      tell(other);
    return value;
  }
  double totalOfProcesses(double value) override {
    asError(rank, patience, [&] {
      value = total(rank, value);
      network.finish(patience);
    });
    return value;
  }

  void fail(const std::string &text) override { network.fail(text); }

private:
  void meet(const TorchStage &stage) {
    replicasOf(stage, network.numRanks());
    std::ostringstream text;
    for (const auto &[key, module] : stage.modules())
      for (const Parameter &parameter : module.parameters)
        text << int(key.first) << ' ' << key.second << ' ' << parameter.name
             << '\n'
             << describe(parameter.value) << '\n';
    PlaceFinder finder;
    uint32_t other = 0;
    for (const std::string &said : network.gather(text.str(), patience)) {
      std::istringstream in(said);
      unsigned pipe, number;
      std::string name, description;
      while (in >> pipe >> number && in.get() && std::getline(in, name) &&
             std::getline(in, description))
        finder.add(
            {other, static_cast<uint8_t>(pipe), static_cast<uint16_t>(number)},
            name, description);
      ++other;
    }
    places = finder.shared();
    checkSums(stage, places);
    addOwn(stage, rank);
    finished[rank] = false;
    for (const auto &[name, all] : places)
      plan(name, all);
  }

  /// Notes who hands a weight over to whom.
  void plan(const std::string &name, const std::vector<Place> &all) {
    uint32_t owner = all.front().rank;
    for (Place place : all) {
      if (place.rank == rank && owner != rank)
        toOwner[place][owner].push_back(name);
      if (owner == rank && place.rank != rank)
        toMe[place].push_back(name);
    }
    std::set<uint32_t> members;
    for (Place place : all)
      members.insert(place.rank);
    for (uint32_t member : members)
      if (member != owner && owner == rank)
        sumsFor[member].push_back(name);
      else if (member == rank && owner != rank)
        sumsFrom[owner].push_back(name);
  }

  void give(Place place, Grads &&grads) override {
    for (const auto &[owner, names] : toOwner[place])
      send(owner, place, names, grads);
    for (const auto &[name, grad] : grads)
      if (places.at(name).front().rank == rank)
        table[name][place] = grad;
  }

  Grads collect(uint32_t) override {
    // Each comes in the order in which its rank hands over.
    std::map<uint32_t, size_t> expected;
    for (const auto &[place, names] : toMe)
      ++expected[place.rank];
    for (const auto &[from, count] : expected)
      for (size_t i = 0; i != count; ++i) {
        Message<Tensors> message = network.receiveAside(from, patience);
        Place place{from, message.label.pipe, message.label.from};
        auto names = toMe.find(place);
        if (names == toMe.end())
          throwOther(from);
        receive(message, names->second, from,
                [&](const std::string &name, const at::Tensor &grad) {
                  table[name][place] = grad;
                });
      }
    Grads sums;
    for (const auto &[name, byPlace] : std::exchange(table, {})) {
      std::vector<at::Tensor> grads;
      for (const auto &[place, grad] : byPlace)
        grads.push_back(grad);
      sums[name] = sumOf(grads);
    }
    for (const auto &[member, names] : sumsFor)
      send(member, {}, names, sums);
    for (const auto &[owner, names] : sumsFrom)
      receive(network.receiveAside(owner, patience), names, owner,
              [&](const std::string &name, const at::Tensor &sum) {
                sums[name] = sum;
              });
    return sums;
  }

  void send(uint32_t to, Place place, const std::vector<std::string> &names,
            const Grads &grads) {
    Tensors values;
    for (const std::string &name : names)
      values.push_back(grads.at(name));
    network.sendAside(to,
                      {{place.pipe, 0, place.stage, 0, 0}, std::move(values)});
  }
  template <class Take>
  void receive(const Message<Tensors> &message,
               const std::vector<std::string> &names, uint32_t from,
               Take take) {
    if (message.value.size() != names.size())
      throwOther(from);
    for (size_t i = 0; i != names.size(); ++i)
      take(names[i], message.value[i]);
  }
  [[noreturn]] static void throwOther(uint32_t from) {
    throw std::runtime_error("rank " + std::to_string(from) +
                             " sends something else");
  }

  C10d &network;
  const uint32_t rank;
  /// Of own places, by owner; of others', those that this rank owns.
  std::map<Place, std::map<uint32_t, std::vector<std::string>>> toOwner;
  std::map<Place, std::vector<std::string>> toMe;
  std::map<uint32_t, std::vector<std::string>> sumsFor, sumsFrom;
  /// What has come for the weights that this rank owns.
  std::map<std::string, std::map<Place, at::Tensor>> table;
};

SharedWeights::SharedWeights(std::span<TorchStage> stages,
                             milliseconds patience)
    : impl(std::make_shared<Threads>(stages, patience)) {
  for (uint32_t rank = 0; rank != stages.size(); ++rank)
    stages[rank].setSums(impl, rank);
}
SharedWeights::SharedWeights(TorchStage &stage, C10d &network,
                             milliseconds patience)
    : impl(std::make_shared<Processes>(stage, network, patience)) {
  stage.setSums(impl, network.rank());
}
SharedWeights::SharedWeights(SharedWeights &&) noexcept = default;
SharedWeights::~SharedWeights() = default;

void SharedWeights::sumGradients() { impl->endStep(); }

void SharedWeights::step(std::span<TorchStage> stages) {
  sumGradients();
  double squares = 0;
  bool isAsked = false;
  for (const TorchStage &stage : stages)
    if (stage.lastStep() == TorchStage::Step::NotYet && stage.needsNorm()) {
      isAsked = true;
      squares += stage.squares();
    }
  if (isAsked)
    squares = impl->totalOfProcesses(squares);
  for (TorchStage &stage : stages)
    if (stage.lastStep() == TorchStage::Step::NotYet)
      stage.moveWeights(squares);
}

std::vector<std::string> SharedWeights::names() const {
  std::vector<std::string> names;
  for (const auto &[name, places] : impl->allPlaces())
    names.push_back(name);
  return names;
}
