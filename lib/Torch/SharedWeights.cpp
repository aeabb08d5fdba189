#include "ppcc/Torch/SharedWeights.h"

#include "SharedReplicas.h"
#include "StageState.h"

#include "ppcc/Runtime/Threads.h"

#include <ATen/ops/add.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>

#include <deque>
#include <set>

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
struct OwnReplica {
  StageReplica place;
  std::map<std::string, std::vector<at::Tensor>> weights;
  uint64_t numActions = 0; ///< That sum its gradients, in a step.
  uint64_t numBegun = 0;
  bool isSent = false;

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
void withErrorContext(uint32_t rank, milliseconds timeout, Run run) {
  constexpr const char *what = "the sum of shared weights";
  try {
    run();
  } catch (const Error &) {
    throw;
  } catch (const TimedOut &) {
    throw Error(rank, what, "", concat("has waited ", timeout.count(), " ms"));
  } catch (const PeerFailed &failure) {
    throw PeerError(rank, what, "", failure.text);
  } catch (const std::exception &error) {
    throw Error(rank, what, "", error.what());
  }
}

void checkReplicas(const TorchStage &stage, size_t numRanks) {
  uint32_t ofProgram = stage.program().numRanks;
  if (numRanks % ofProgram != 0)
    throw Error(concat("the program is for ", ofProgram, " ranks, of which ",
                       numRanks, " are not a whole number of replicas"));
}

/// What a rank tells others beside its messages, in an order of its own to
/// each.
struct SideChannel {
  std::function<void(uint32_t to, Message<Tensors> &&)> send;
  std::function<Message<Tensors>(uint32_t from)> receive;
  std::function<void(const std::string &)> fail;
};

/// Those of ranks in threads of one process.
std::vector<SideChannel> threadSideChannels(uint32_t numRanks,
                                            milliseconds timeout) {
  using Network = ThreadNetwork<Tensors>;
  struct Job {
    explicit Job(uint32_t numRanks) : network(numRanks) {}
    Network network;
    std::deque<Network::Endpoint> ends; ///< By rank.
  };
  auto job = std::make_shared<Job>(numRanks);
  std::vector<SideChannel> all;
  for (uint32_t rank = 0; rank != numRanks; ++rank) {
    std::shared_ptr<Network::Endpoint> end(
        job, &job->ends.emplace_back(job->network, rank));
    all.push_back({[=](uint32_t to, Message<Tensors> &&message) {
                     end->send(to, std::move(message));
                   },
                   [=](uint32_t from) {
                     Message<Tensors> message{};
                     end->receive(from, message, timeout);
                     return message;
                   },
                   [=](const std::string &text) { end->fail(text); }});
  }
  return all;
}

/// Which place of a rank hands what over when, and to whom: the lowest rank of
/// those that have a weight sums it.
class RankReducer : public GradientReducer {
public:
  RankReducer(const TorchStage &stage, uint32_t rank, uint32_t numRanks,
              const SharedReplicas &places, SideChannel network)
      : rank(rank), numRanks(numRanks), places(places),
        network(std::move(network)) {
    auto counts = countReductions(stage);
    for (const auto &[key, module] : stage.modules()) {
      OwnReplica place{{rank, key.first, key.second}, {}, counts[key]};
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
    for (OwnReplica &one : own)
      if (one.place.pipe == pipe && one.place.stage == stage &&
          ++one.numBegun == one.numActions)
        sendGradients(one);
  }
  void finish() override {
    if (std::exchange(isFinished, true))
      return;
    sendAllGradients();
    Grads sums = collect();
    for (OwnReplica &one : own)
      one.take(sums);
  }
  double allReduceSum(double value) override {
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
  bool isOwner(const std::string &name) const override {
    auto found = places.find(name);
    return found == places.end() || found->second.front().rank == rank;
  }
  void fail(const std::string &text) override { network.fail(text); }

  void sendAllGradients() {
    for (OwnReplica &one : own)
      if (!one.isSent)
        sendGradients(one);
  }
  /// Ready for the next step.
  void endStep() {
    for (OwnReplica &one : own) {
      one.numBegun = 0;
      one.isSent = false;
    }
    isFinished = false;
  }

  const uint32_t rank;

private:
  /// Notes who hands a weight over to whom.
  void plan(const std::string &name, const std::vector<StageReplica> &all) {
    uint32_t owner = all.front().rank;
    for (StageReplica place : all) {
      if (place.rank == rank && owner != rank)
        toOwner[place][owner].push_back(name);
      if (owner == rank && place.rank != rank)
        toMe[place].push_back(name);
    }
    std::set<uint32_t> members;
    for (StageReplica place : all)
      members.insert(place.rank);
    for (uint32_t member : members)
      if (member != owner && owner == rank)
        sumsFor[member].push_back(name);
      else if (member == rank && owner != rank)
        sumsFrom[owner].push_back(name);
  }

  void sendGradients(OwnReplica &one) {
    one.isSent = true;
    Grads grads = one.grads();
    for (const auto &[owner, names] : toOwner[one.place])
      send(owner, one.place, names, grads);
    for (const auto &[name, grad] : grads)
      if (isOwner(name))
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
        StageReplica place{from, message.label.pipe, message.label.from};
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

  void send(uint32_t to, StageReplica place,
            const std::vector<std::string> &names, const Grads &grads) {
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
    throw std::runtime_error(concat("rank ", from, " sends something else"));
  }

  const uint32_t numRanks;
  const SharedReplicas places;
  const SideChannel network;
  std::vector<OwnReplica> own;
  bool isFinished = false; ///< In this step.
  /// Of own places, by owner; of others', those that this rank owns.
  std::map<StageReplica, std::map<uint32_t, std::vector<std::string>>> toOwner;
  std::map<StageReplica, std::vector<std::string>> toMe;
  std::map<uint32_t, std::vector<std::string>> sumsFor, sumsFrom;
  /// What has come for the weights that this rank owns.
  std::map<std::string, std::map<StageReplica, at::Tensor>> table;
};

} // namespace

struct SharedWeights::Impl {
  milliseconds timeout;
  C10d *network; ///< Of processes.
  std::vector<std::shared_ptr<RankReducer>> members{};
  SharedReplicas places{};

  void add(TorchStage &stage, uint32_t rank, uint32_t numRanks,
           SideChannel asides) {
    stage.own().sums = members.emplace_back(std::make_shared<RankReducer>(
        stage, rank, numRanks, places, std::move(asides)));
    stage.own().globalRank = rank;
  }
  template <class Act> void forEach(Act act) {
    for (const std::shared_ptr<RankReducer> &member : members)
      withErrorContext(member->rank, timeout, [&] { act(*member); });
  }
};

SharedWeights::SharedWeights(std::span<TorchStage> stages, milliseconds timeout)
    : impl(new Impl{timeout, nullptr}) {
  auto numRanks = static_cast<uint32_t>(stages.size());
  std::vector<std::string> described;
  for (const TorchStage &stage : stages)
    described.push_back(describeWeights(stage));
  impl->places = findSharedReplicas(described);
  if (numRanks != 0) {
    checkReplicas(stages.front(), numRanks);
    checkReductions(stages.front(), impl->places);
  }
  std::vector<SideChannel> asides = threadSideChannels(numRanks, timeout);
  for (uint32_t rank = 0; rank != numRanks; ++rank) {
    impl->add(stages[rank], rank, numRanks, asides[rank]);
  }
}

SharedWeights::SharedWeights(TorchStage &stage, C10d &network,
                             milliseconds timeout)
    : impl(new Impl{timeout, &network}) {
  uint32_t rank = network.rank();
  withErrorContext(rank, timeout, [&] {
    checkReplicas(stage, network.numRanks());
    impl->places =
        findSharedReplicas(network.gather(describeWeights(stage), timeout));
    checkReductions(stage, impl->places);
  });
  impl->add(stage, rank, network.numRanks(),
            {[&network](uint32_t to, Message<Tensors> &&message) {
               network.sendSideChannel(to, std::move(message));
             },
             [&network, timeout](uint32_t from) {
               return network.receiveSideChannel(from, timeout);
             },
             [&network](const std::string &text) { network.fail(text); }});
}

SharedWeights::SharedWeights(SharedWeights &&) noexcept = default;
SharedWeights::~SharedWeights() = default;

void SharedWeights::reduceGradients() {
  impl->forEach([](RankReducer &member) { member.sendAllGradients(); });
  // An owner is the lowest of its ranks, so each finds what it waits for.
  impl->forEach([&](RankReducer &member) {
    member.finish();
    if (impl->network)
      impl->network->finish(impl->timeout);
  });
  impl->forEach([](RankReducer &member) { member.endStep(); });
}

void SharedWeights::step(std::span<TorchStage> stages) {
  reduceGradients();
  double sumOfSquares = 0;
  bool isAsked = false;
  for (const TorchStage &stage : stages)
    if (stage.lastStep() == TorchStage::Step::Pending &&
        stage.own().needsNorm()) {
      isAsked = true;
      sumOfSquares += stage.own().sumOfSquares();
    }
  if (isAsked && impl->network)
    impl->forEach([&](RankReducer &member) {
      sumOfSquares = member.allReduceSum(sumOfSquares);
      impl->network->finish(impl->timeout);
    });
  for (TorchStage &stage : stages)
    if (stage.lastStep() == TorchStage::Step::Pending)
      stage.own().applyUpdate(sumOfSquares);
}

std::vector<std::string> SharedWeights::names() const {
  std::vector<std::string> names;
  for (const auto &[name, places] : impl->places)
    names.push_back(name);
  return names;
}
