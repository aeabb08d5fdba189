#include "ppcc/Torch/SharedWeights.h"

#include "GradientSums.h"
#include "Places.h"

#include "ppcc/Runtime/Error.h"

#include <ATen/ops/add.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>

#include <condition_variable>
#include <deque>
#include <mutex>
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

void checkReplicas(const TorchStage &stage, size_t numRanks) {
  uint32_t ofProgram = stage.program().numRanks;
  if (numRanks % ofProgram != 0)
    throw Error("the program is for " + std::to_string(ofProgram) +
                " ranks, of which " + std::to_string(numRanks) +
                " are no whole number of replicas");
}

/// What a rank tells others beside its messages, in an order of its own to
/// each.
struct Asides {
  std::function<void(uint32_t to, Message<Tensors> &&)> send;
  std::function<Message<Tensors>(uint32_t from)> receive;
  std::function<void(const std::string &)> fail;
};

/// That of ranks in threads of one process.
class Queues {
public:
  explicit Queues(milliseconds patience) : patience(patience) {}

  static Asides of(const std::shared_ptr<Queues> &all, uint32_t rank) {
    return {[=](uint32_t to, Message<Tensors> &&message) {
              all->send(rank, to, std::move(message));
            },
            [=](uint32_t from) { return all->receive(from, rank); },
            [=](const std::string &text) { all->fail(text); }};
  }

private:
  void send(uint32_t from, uint32_t to, Message<Tensors> &&message) {
    std::lock_guard lock(mutex);
    queues[{from, to}].push_back(std::move(message));
    changed.notify_all();
  }
  Message<Tensors> receive(uint32_t from, uint32_t to) {
    std::unique_lock lock(mutex);
    std::deque<Message<Tensors>> &queue = queues[{from, to}];
    if (!changed.wait_for(lock, patience,
                          [&] { return !queue.empty() || !failure.empty(); }))
      throw TimedOut();
    if (queue.empty())
      throw PeerFailed{failure};
    Message<Tensors> message = std::move(queue.front());
    queue.pop_front();
    return message;
  }
  void fail(const std::string &text) {
    std::lock_guard lock(mutex);
    if (failure.empty())
      failure = text;
    changed.notify_all();
  }

  milliseconds patience;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<uint32_t, uint32_t>, std::deque<Message<Tensors>>> queues;
  std::string failure; ///< Of the first rank that failed.
};

/// Which place of a rank hands what over when, and to whom: the lowest rank of
/// those that have a weight sums it.
class Member : public GradientSums {
public:
  Member(const TorchStage &stage, uint32_t rank, uint32_t numRanks,
         const Places &places, Asides network)
      : rank(rank), numRanks(numRanks), places(places),
        network(std::move(network)) {
    auto counts = countSums(stage);
    for (const auto &[key, module] : stage.modules()) {
      OwnPlace place{{rank, key.first, key.second}, {}, counts[key]};
      for (const Parameter &parameter : module.parameters)
        if (places.contains(parameter.name))
          place.weights[parameter.name].push_back(parameter.value);
      if (!place.weights.empty())
        own.push_back(std::move(place));
    }
    for (const auto &[name, all] : places)
      plan(name, all);
  }

  void begin(uint8_t pipe, uint16_t stage) override {
    for (OwnPlace &one : own)
      if (one.place.pipe == pipe && one.place.stage == stage &&
          ++one.numBegun == one.numActions)
        handOver(one);
  }
  void finish() override {
    if (std::exchange(isFinished, true))
      return;
    handOverAll();
    Grads sums = collect();
    for (OwnPlace &one : own)
      one.take(sums);
  }
  double total(double value) override {
    constexpr uint32_t first = 0;
    auto tell = [&](uint32_t to) {
      network.send(to, {{}, {at::scalar_tensor(value, at::kDouble)}});
    };
    auto heard = [&](uint32_t from) {
      return network.receive(from).value.at(0).item().toDouble();
    };
    if (rank != first) {
      tell(first);
      return heard(first);
    }
    for (uint32_t other = 1; other != numRanks; ++other)
      value += heard(other);
    for (uint32_t other = 1; other != numRanks; ++other)
      tell(other);
    return value;
  }
  bool owns(const std::string &name) const override {
    auto found = places.find(name);
    return found == places.end() || found->second.front().rank == rank;
  }
  void fail(const std::string &text) override { network.fail(text); }

  void handOverAll() {
    for (OwnPlace &one : own)
      if (!one.isHandedOver)
        handOver(one);
  }
  /// Ready for the next step.
  void endStep() {
    for (OwnPlace &one : own) {
      one.numBegun = 0;
      one.isHandedOver = false;
    }
    isFinished = false;
  }

  const uint32_t rank;

private:
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

  void handOver(OwnPlace &one) {
    one.isHandedOver = true;
    Grads grads = one.grads();
    for (const auto &[owner, names] : toOwner[one.place])
      send(owner, one.place, names, grads);
    for (const auto &[name, grad] : grads)
      if (owns(name))
        table[name][one.place] = grad;
  }

  Grads collect() {
    // Each comes in the order in which its rank hands over.
    std::map<uint32_t, size_t> expected;
    for (const auto &[place, names] : toMe)
      ++expected[place.rank];
    for (const auto &[from, count] : expected)
      for (size_t i = 0; i != count; ++i) {
        Message<Tensors> message = network.receive(from);
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
      receive(network.receive(owner), names, owner,
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
    network.send(to, {{place.pipe, 0, place.stage, 0, 0}, std::move(values)});
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

  const uint32_t numRanks;
  const Places places;
  const Asides network;
  std::vector<OwnPlace> own;
  bool isFinished = false; ///< In this step.
  /// Of own places, by owner; of others', those that this rank owns.
  std::map<Place, std::map<uint32_t, std::vector<std::string>>> toOwner;
  std::map<Place, std::vector<std::string>> toMe;
  std::map<uint32_t, std::vector<std::string>> sumsFor, sumsFrom;
  /// What has come for the weights that this rank owns.
  std::map<std::string, std::map<Place, at::Tensor>> table;
};

} // namespace

struct SharedWeights::Impl {
  milliseconds patience;
  C10d *network; ///< Of processes.
  std::vector<std::shared_ptr<Member>> members{};
  Places places{};

  template <class Act> void forEach(Act act) {
    for (const std::shared_ptr<Member> &member : members)
      asError(member->rank, patience, [&] { act(*member); });
  }
};

SharedWeights::SharedWeights(std::span<TorchStage> stages,
                             milliseconds patience)
    : impl(new Impl{patience, nullptr}) {
  auto numRanks = static_cast<uint32_t>(stages.size());
  PlaceFinder finder;
  for (uint32_t rank = 0; rank != numRanks; ++rank)
    for (const auto &[key, module] : stages[rank].modules())
      for (const Parameter &parameter : module.parameters)
        finder.add({rank, key.first, key.second}, parameter.name,
                   describe(parameter.value));
  impl->places = finder.shared();
  if (numRanks != 0) {
    checkReplicas(stages.front(), numRanks);
    checkSums(stages.front(), impl->places);
  }
  auto queues = std::make_shared<Queues>(patience);
  for (uint32_t rank = 0; rank != numRanks; ++rank) {
    impl->members.push_back(std::make_shared<Member>(
        stages[rank], rank, numRanks, impl->places, Queues::of(queues, rank)));
    stages[rank].setSums(impl->members.back(), rank);
  }
}

SharedWeights::SharedWeights(TorchStage &stage, C10d &network,
                             milliseconds patience)
    : impl(new Impl{patience, &network}) {
  uint32_t rank = network.rank();
  asError(rank, patience, [&] {
    checkReplicas(stage, network.numRanks());
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
    impl->places = finder.shared();
    checkSums(stage, impl->places);
  });
  impl->members.push_back(std::make_shared<Member>(
      stage, rank, network.numRanks(), impl->places,
      Asides{[&network](uint32_t to, Message<Tensors> &&message) {
               network.sendAside(to, std::move(message));
             },
             [&network, patience](uint32_t from) {
               return network.receiveAside(from, patience);
             },
             [&network](const std::string &text) { network.fail(text); }}));
  stage.setSums(impl->members.back(), rank);
}

SharedWeights::SharedWeights(SharedWeights &&) noexcept = default;
SharedWeights::~SharedWeights() = default;

void SharedWeights::sumGradients() {
  impl->forEach([](Member &member) { member.handOverAll(); });
  // An owner is the lowest of its ranks, so each finds what it waits for.
  impl->forEach([&](Member &member) {
    member.finish();
    if (impl->network)
      impl->network->finish(impl->patience);
  });
  impl->forEach([](Member &member) { member.endStep(); });
}

void SharedWeights::step(std::span<TorchStage> stages) {
  sumGradients();
  double squares = 0;
  bool isAsked = false;
  for (const TorchStage &stage : stages)
    if (stage.lastStep() == TorchStage::Step::NotYet && stage.needsNorm()) {
      isAsked = true;
      squares += stage.squares();
    }
  if (isAsked && impl->network)
    impl->forEach([&](Member &member) {
      squares = member.total(squares);
      impl->network->finish(impl->patience);
    });
  for (TorchStage &stage : stages)
    if (stage.lastStep() == TorchStage::Step::NotYet)
      stage.moveWeights(squares);
}

std::vector<std::string> SharedWeights::names() const {
  std::vector<std::string> names;
  for (const auto &[name, places] : impl->places)
    names.push_back(name);
  return names;
}
