#include "ppcc/Torch/SharedWeights.h"

#include "ppcc/Runtime/Error.h"

#include <ATen/ops/add.h>
#include <ATen/ops/zeros_like.h>

#include <map>
#include <sstream>

using namespace ppcc::rt;
using std::chrono::milliseconds;

namespace {

/// What all places of a weight must agree on, as text: its type, shape and
/// values. Equal weights with different beginnings train, but to nothing.
std::string describe(const at::Tensor &weight) {
  at::Tensor values = weight.detach().cpu().contiguous();
  const auto *bytes = static_cast<const uint8_t *>(values.data_ptr());
  uint64_t hash = 0xCBF29CE484222325u; // FNV-1a.
  for (size_t i = 0; i != values.nbytes(); ++i)
    hash = (hash ^ bytes[i]) * 0x100000001B3u;
  std::ostringstream out;
  out << weight.scalar_type() << ' ' << weight.sizes() << ", values "
      << std::hex << hash;
  return out.str();
}

/// A place that has a weight.
struct Place {
  uint32_t rank;
  std::string description;
};

/// Where each weight is, by name.
using Places = std::map<std::string, std::vector<Place>>;

/// Leaves those that are in several places.
void keepShared(Places &places) {
  std::erase_if(places, [](const auto &entry) {
    const auto &[name, all] = entry;
    for (const Place &place : all)
      if (place.description != all.front().description)
        throw Error("the weight `" + name + "` is " + all.front().description +
                    " on rank " + std::to_string(all.front().rank) + " and " +
                    place.description + " on rank " +
                    std::to_string(place.rank) +
                    ": stages that share a weight must begin with the same");
    return all.size() == 1;
  });
}

/// In the order of the list.
at::Tensor sumOf(const std::vector<at::Tensor> &weights) {
  at::Tensor sum;
  for (const at::Tensor &weight : weights)
    if (const at::Tensor &grad = weight.grad(); grad.defined())
      sum = sum.defined() ? at::add(sum, grad) : grad;
  return sum.defined() ? sum : at::zeros_like(weights.front());
}

void giveTo(const std::vector<at::Tensor> &weights, const at::Tensor &grad) {
  for (const at::Tensor &weight : weights)
    weight.mutable_grad() = grad.clone();
}

} // namespace

class SharedWeights::Impl {
public:
  /// The tensors of this process, by name.
  std::map<std::string, std::vector<at::Tensor>> weights;

  virtual ~Impl() = default;
  virtual void sum() {
    for (auto &[name, all] : weights)
      giveTo(all, sumOf(all));
  }

  void collect(const TorchStage &stage, const Places &places) {
    for (const Parameter &parameter : stage.parameters())
      if (places.contains(parameter.name))
        weights[parameter.name].push_back(parameter.value);
  }

  class Processes;
};

/// The lowest rank of those that have a weight sums it.
class SharedWeights::Impl::Processes : public SharedWeights::Impl {
public:
  Processes(const TorchStage &stage, C10d &network, milliseconds patience)
      : network(network), patience(patience) {
    collective([&] { meet(stage); });
  }

  void sum() override {
    collective([&] { exchange(); });
  }

private:
  /// What goes wrong becomes an Error.
  template <class Run> void collective(Run run) {
    constexpr const char *what = "the sum of shared weights";
    try {
      run();
    } catch (const Error &) {
      throw;
    } catch (const TimedOut &) {
      throw Error(network.rank(), what, "",
                  "has waited " + std::to_string(patience.count()) + " ms");
    } catch (const PeerFailed &failure) {
      throw PeerError(network.rank(), what, "", failure.text);
    } catch (const std::exception &error) {
      throw Error(network.rank(), what, "", error.what());
    }
  }

  void meet(const TorchStage &stage) {
    std::string text;
    for (const Parameter &parameter : stage.parameters())
      text += parameter.name + '\n' + describe(parameter.value) + '\n';
    Places places;
    uint32_t rank = 0;
    for (const std::string &said : network.gather("weights", text, patience)) {
      std::istringstream in(said);
      std::string name, description;
      while (std::getline(in, name) && std::getline(in, description))
        places[name].push_back({rank, description});
      ++rank;
    }
    keepShared(places);
    collect(stage, places);
    // In the order of the names, on all ranks.
    for (const auto &[name, all] : places)
      addExchanges(name, all);
  }

  void exchange() {
    for (auto &[name, all] : weights)
      sums[name] = sumOf(all);
    for (const auto &[owner, names] : toOwner)
      send(owner, names);
    for (const auto &[member, names] : toMember)
      receive(member, names, [&](const std::string &name, at::Tensor grad) {
        sums[name] = at::add(sums[name], grad);
      });
    for (const auto &[member, names] : toMember)
      send(member, names);
    for (const auto &[owner, names] : toOwner)
      receive(owner, names, [&](const std::string &name, at::Tensor grad) {
        sums[name] = grad;
      });
    for (auto &[name, all] : weights)
      giveTo(all, sums[name]);
    network.finish(patience);
  }

  void addExchanges(const std::string &name, const std::vector<Place> &all) {
    uint32_t owner = all.front().rank, previous = owner;
    for (const Place &place : all) {
      if (std::exchange(previous, place.rank) == place.rank)
        continue;
      if (owner == network.rank())
        toMember[place.rank].push_back(name);
      else if (place.rank == network.rank())
        toOwner[owner].push_back(name);
    }
  }

  /// No edge of a program.
  Label label(uint32_t from, uint32_t to) const {
    return {0xFF, 0, static_cast<uint16_t>(from), static_cast<uint16_t>(to), 0};
  }
  void send(uint32_t to, const std::vector<std::string> &names) {
    Tensors grads;
    for (const std::string &name : names)
      grads.push_back(sums[name]);
    network.send(to, {label(network.rank(), to), std::move(grads)});
  }
  template <class Take>
  void receive(uint32_t from, const std::vector<std::string> &names,
               Take take) {
    Message<Tensors> message{};
    network.postReceive(from, label(from, network.rank()), 0);
    network.receive(from, message, patience);
    if (message.label != label(from, network.rank()) ||
        message.value.size() != names.size())
      throw std::runtime_error("rank " + std::to_string(from) +
                               " sends something else");
    for (size_t i = 0; i != names.size(); ++i)
      take(names[i], message.value[i]);
  }

  C10d &network;
  milliseconds patience;
  std::map<uint32_t, std::vector<std::string>> toOwner, toMember;
  std::map<std::string, at::Tensor> sums;
};

SharedWeights::SharedWeights(std::span<TorchStage> stages)
    : impl(std::make_unique<Impl>()) {
  Places places;
  for (uint32_t rank = 0; rank != stages.size(); ++rank)
    for (const Parameter &parameter : stages[rank].parameters())
      places[parameter.name].push_back({rank, describe(parameter.value)});
  keepShared(places);
  for (const TorchStage &stage : stages)
    impl->collect(stage, places);
}
SharedWeights::SharedWeights(const TorchStage &stage, C10d &network,
                             milliseconds patience)
    : impl(std::make_unique<Impl::Processes>(stage, network, patience)) {}
SharedWeights::SharedWeights(SharedWeights &&) noexcept = default;
SharedWeights::~SharedWeights() = default;

void SharedWeights::sumGradients() { impl->sum(); }

std::vector<std::string> SharedWeights::names() const {
  std::vector<std::string> names;
  for (const auto &[name, all] : impl->weights)
    names.push_back(name);
  return names;
}
