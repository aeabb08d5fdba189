#include "ppcc/Torch/C10d.h"

#include "Pack.h"

#include "ppcc/Runtime/Await.h"

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <ATen/ops/empty.h>

#include <csignal>
#include <cstring>
#include <deque>
#include <map>
#include <utility>

using namespace ppcc::rt;
using std::chrono::milliseconds;

namespace {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

/// For waits that somebody else ends.
constexpr milliseconds forever = std::chrono::hours(24 * 365);

constexpr const char *failureKey = "ppcc/failure";
constexpr const char *connectedKey = "ppcc/connected", *allKey = "ppcc/all";

/// The messages of an edge have one layout.
using EdgeKey = std::array<uint16_t, 4>;
EdgeKey edgeOf(const Label &label) {
  return {label.pipe, label.slot, label.from, label.to};
}

std::vector<uint8_t> bytesOf(const std::string &text) {
  return {text.begin(), text.end()};
}

at::Tensor bufferOf(const std::string &text) {
  at::Tensor buffer = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  std::memcpy(buffer.data_ptr(), text.data(), text.size());
  return buffer;
}

/// Bytes of a message under way. c10d keeps them alive.
struct Transfer {
  at::Tensor buffer;
  WorkPtr work;
};

/// Waits for sends, in their order, in a thread of its own: c10d cannot be
/// asked whether one has ended. The thread wakes where somebody waits, or where
/// they have come to many bytes.
class Sends {
public:
  explicit Sends(uint32_t numRanks)
      : open(numRanks), waiter([this] { waitForAll(); }) {}
  ~Sends() {
    abort();
    waiter.join();
  }

  void add(uint32_t to, Transfer &&transfer) {
    std::lock_guard lock(mutex);
    underWay += transfer.buffer.nbytes();
    queue.push_back({to, std::move(transfer)});
    ++open[to];
    if (underWay >= many)
      drain();
  }

  /// Those to a rank, or all. False when they cannot end any more. Throws
  /// TimedOut.
  bool wait(milliseconds patience, std::optional<uint32_t> to = {}) {
    auto done = [&] { return to ? open[*to] == 0 : queue.empty(); };
    std::unique_lock lock(mutex);
    if (!done())
      drain();
    if (!ended.wait_for(lock, patience, [&] { return isBroken || done(); }))
      throw TimedOut();
    return done();
  }

  uint64_t bytes() {
    std::lock_guard lock(mutex);
    return underWay;
  }

  /// Ends the waits.
  void abort() {
    std::lock_guard lock(mutex);
    leaving = true;
    if (!queue.empty() && !isBroken)
      queue.front().transfer.work->abort();
    wake.notify_one();
  }

private:
  struct Send {
    uint32_t to;
    Transfer transfer;
  };

  void drain() {
    if (!std::exchange(drains, true))
      wake.notify_one();
  }

  void waitForAll() {
    std::unique_lock lock(mutex);
    while (true) {
      drains &= !queue.empty();
      wake.wait(lock, [&] { return leaving || drains; });
      if (leaving)
        return;
      WorkPtr work = queue.front().transfer.work;
      lock.unlock();
      bool isSent = false;
      try {
        isSent = work->wait(forever);
      } catch (const std::exception &) {
      }
      lock.lock();
      if (!isSent || leaving) {
        isBroken = true;
        ended.notify_all();
        return;
      }
      size_t left = --open[queue.front().to];
      underWay -= queue.front().transfer.buffer.nbytes();
      queue.pop_front();
      if (left == 0)
        ended.notify_all();
    }
  }

  static constexpr uint64_t many = 1 << 14;

  std::mutex mutex;
  std::condition_variable wake, ended; ///< Of the thread; of who waits for it.
  std::deque<Send> queue;
  uint64_t underWay = 0;    ///< Bytes of the queue.
  std::vector<size_t> open; ///< Sends to each rank that have not ended.
  bool leaving = false, isBroken = false;
  bool drains = false; ///< The thread waits until the queue is empty.
  std::thread waiter;
};

/// A receive that the engine has posted; ours may come later.
struct Receive {
  EdgeKey edge;
  Transfer transfer; ///< The size of the layout, or the message.
};

/// Messages with different tags have each an order of their own.
enum Tag : int { Ordinary, Aside };

} // namespace

struct C10d::State {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  c10::intrusive_ptr<c10d::Store> store;
  const uint32_t rank = static_cast<uint32_t>(group->getRank());
  std::vector<std::deque<Receive>> sources = ///< By rank, in order.
      std::vector<std::deque<Receive>>(static_cast<size_t>(group->getSize()));
  std::map<EdgeKey, TensorsLayout> sentLayouts{}, receivedLayouts{};
  std::unique_ptr<Sends> sends[2] = {newSends(), newSends()}; ///< By tag.
  bool ended = true;            ///< Nothing is under way.
  bool tellsEach = false;       ///< Each message tells its layout.
  at::Device device = at::kCPU; ///< Where what comes is laid.
  uint64_t gatherings = 0;

  uint32_t numRanks() const { return static_cast<uint32_t>(sources.size()); }
  std::unique_ptr<Sends> newSends() const {
    return std::make_unique<Sends>(numRanks());
  }

  /// Gloo carries memory of the host.
  static at::Tensor packed(const TensorsLayout &layout,
                           const Message<Tensors> &message) {
    at::Tensor buffer = layout.pack(message.value).cpu();
    std::memcpy(buffer.data_ptr(), &message.label, sizeof message.label);
    return buffer;
  }

  /// Null where the connection has closed already, which a wait will tell.
  template <class Begin> static WorkPtr begin(Begin begin) {
    try {
      return begin();
    } catch (const std::exception &) {
      return {};
    }
  }

  Message<Tensors> unpacked(const TensorsLayout &layout,
                            const at::Tensor &buffer) const {
    Message<Tensors> message{{}, layout.unpack(buffer.to(device))};
    std::memcpy(&message.label, buffer.data_ptr(), sizeof message.label);
    return message;
  }

  void post(uint32_t to, at::Tensor buffer, Tag tag) {
    std::vector<at::Tensor> tensors{buffer};
    WorkPtr work =
        begin([&] { return group->send(tensors, static_cast<int>(to), tag); });
    if (!work)
      throwGone(to);
    sends[tag]->add(to, {std::move(buffer), std::move(work)});
  }
  void postLayout(uint32_t to, const TensorsLayout &layout, Tag tag) {
    std::string text = layout.text();
    uint64_t size = text.size();
    post(to, bufferOf({reinterpret_cast<char *>(&size), sizeof size}), tag);
    post(to, bufferOf(text), tag);
  }
  Transfer postBytes(uint32_t from, int64_t bytes, Tag tag) {
    std::vector<at::Tensor> tensors{at::empty({bytes}, at::kByte)};
    WorkPtr work = begin(
        [&] { return group->recv(tensors, static_cast<int>(from), tag); });
    return {tensors.front(), std::move(work)};
  }

  /// Messages of a rank come in order, so nothing is posted behind one whose
  /// layout is not known.
  void postAhead(uint32_t from) {
    for (Receive &receive : sources[from]) {
      auto known = receivedLayouts.find(receive.edge);
      bool isKnown = known != receivedLayouts.end();
      if (!receive.transfer.work)
        receive.transfer = postBytes(from,
                                     isKnown ? known->second.numBytes()
                                             : int64_t(sizeof(uint64_t)),
                                     Ordinary);
      if (!isKnown)
        return;
    }
  }

  /// What postLayout() sent, of which `sizeOf` receives the first.
  TensorsLayout receiveLayout(uint32_t from, const Transfer &sizeOf,
                              milliseconds patience, Tag tag) {
    await(from, sizeOf, patience);
    uint64_t size;
    std::memcpy(&size, sizeOf.buffer.data_ptr(), sizeof size);
    Transfer text = postBytes(from, static_cast<int64_t>(size), tag);
    await(from, text, patience);
    return TensorsLayout(
        std::string(static_cast<char *>(text.buffer.data_ptr()), size));
  }

  /// A message behind its layout.
  Message<Tensors> receiveTold(uint32_t from, const Transfer &sizeOf,
                               milliseconds patience, Tag tag) {
    TensorsLayout layout = receiveLayout(from, sizeOf, patience, tag);
    Transfer message = postBytes(from, layout.numBytes(), tag);
    await(from, message, patience);
    return unpacked(layout, message.buffer);
  }

  /// c10d throws one and the same for a wait that was too long and for a
  /// connection that has closed.
  void await(uint32_t from, const Transfer &transfer, milliseconds patience) {
    if (!transfer.work)
      throwGone(from);
    auto start = std::chrono::steady_clock::now();
    try {
      transfer.work->wait(patience);
    } catch (const std::exception &) {
      if (std::chrono::steady_clock::now() - start >= patience)
        throw TimedOut();
      throwGone(from);
    }
  }

  [[noreturn]] void throwGone(uint32_t other) {
    std::string text = failureOr("");
    if (!text.empty())
      throw PeerFailed{text};
    throw std::runtime_error(concat(
        "the connection is closed: the process of rank ", other, " has ended"));
  }

  /// What a rank that failed has said.
  std::string failureOr(std::string otherwise) {
    try {
      if (!store->check({failureKey}))
        return otherwise;
      std::vector<uint8_t> bytes = store->get(failureKey);
      return {bytes.begin(), bytes.end()};
    } catch (const std::exception &) {
      return otherwise;
    }
  }
};

C10d C10d::gloo(const std::string &file, uint32_t rank, uint32_t numRanks,
                milliseconds patience, const std::string &host) {
  // Gloo writes to connections that may have closed; Python ignores it, too.
  if (auto old = std::signal(SIGPIPE, SIG_IGN);
      old != SIG_DFL && old != SIG_ERR)
    std::signal(SIGPIPE, old);
  auto store = c10::make_intrusive<c10d::FileStore>(file, int(numRanks));
  store->setTimeout(patience);
  auto options = c10d::ProcessGroupGloo::Options::create(patience);
  options->devices.push_back(
      c10d::ProcessGroupGloo::createDeviceForHostname(host));
  options->threads = 1;
  auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(
      store, int(rank), int(numRanks), options);
  // A rank that fails at once must not do so while others still connect: they
  // would not hear why.
  if (store->add(connectedKey, 1) == int64_t(numRanks))
    store->set(allKey, bytesOf("connected"));
  store->wait({allKey}, patience);
  return C10d(std::move(group), store);
}

C10d::C10d(c10::intrusive_ptr<c10d::ProcessGroup> group,
           c10::intrusive_ptr<c10d::Store> store)
    : state(new State{std::move(group), std::move(store)}) {}
C10d::C10d(C10d &&) noexcept = default;
C10d::~C10d() {
  if (state && !state->ended)
    fail(concat("rank ", rank(), " has left"));
}

uint32_t C10d::rank() const { return state->rank; }
uint32_t C10d::numRanks() const { return state->numRanks(); }

void C10d::tellEachLayout() { state->tellsEach = true; }
void C10d::setDevice(at::Device device) { state->device = device; }

void C10d::send(uint32_t to, Message<Tensors> &&message) {
  state->ended = false;
  TensorsLayout layout(message.value);
  auto [known, isNew] =
      state->sentLayouts.try_emplace(edgeOf(message.label), layout);
  if (isNew || state->tellsEach)
    state->postLayout(to, layout, Ordinary);
  else if (known->second != layout)
    throw std::runtime_error(
        "it carries " + layout.words() + ", and the messages before it " +
        known->second.words() +
        ": all microbatches must have the same types and shapes");
  state->post(to, State::packed(layout, message), Ordinary);
}

void C10d::postReceive(uint32_t from, const Label &label, size_t) {
  state->ended = false;
  state->sources[from].push_back({edgeOf(label), {}});
  state->postAhead(from);
}

bool C10d::receive(uint32_t from, Message<Tensors> &into,
                   milliseconds patience) {
  std::deque<Receive> &receives = state->sources[from];
  Transfer &first = receives.front().transfer;
  if (state->tellsEach) {
    into = state->receiveTold(from, first, patience, Ordinary);
    receives.pop_front();
    state->postAhead(from);
    return true;
  }
  auto &layouts = state->receivedLayouts;
  EdgeKey edge = receives.front().edge;
  auto known = layouts.find(edge);
  if (known == layouts.end()) {
    TensorsLayout layout =
        state->receiveLayout(from, first, patience, Ordinary);
    first = {};
    known = layouts.emplace(edge, std::move(layout)).first;
    state->postAhead(from);
  }
  state->await(from, first, patience);
  into = state->unpacked(known->second, first.buffer);
  receives.pop_front();
  return true;
}

bool C10d::sendsMet(uint32_t to, milliseconds patience) {
  if (!state->sends[Ordinary]->wait(patience, to))
    state->throwGone(to);
  return true;
}

void C10d::finish(milliseconds patience) {
  for (const auto &sends : state->sends)
    if (!sends->wait(patience))
      throw PeerFailed{state->failureOr("a rank has left")};
  state->ended = true;
}

void C10d::fail(const std::string &text) {
  state->ended = true;
  try {
    if (!state->store->check({failureKey}))
      state->store->set(failureKey, bytesOf(text));
  } catch (const std::exception &) {
    // The connections still tell.
  }
  for (auto &sends : state->sends)
    sends.reset();
  for (std::deque<Receive> &source : state->sources)
    source.clear();
  state->group.reset();
}

void C10d::sendAside(uint32_t to, Message<Tensors> &&message) {
  state->ended = false;
  TensorsLayout layout(message.value);
  state->postLayout(to, layout, Aside);
  state->post(to, State::packed(layout, message), Aside);
}

Message<Tensors> C10d::receiveAside(uint32_t from, milliseconds patience) {
  Transfer size = state->postBytes(from, sizeof(uint64_t), Aside);
  return state->receiveTold(from, size, patience, Aside);
}

uint64_t C10d::bytesUnderWay() const {
  uint64_t bytes = 0;
  for (const auto &sends : state->sends)
    bytes += sends->bytes();
  for (const std::deque<Receive> &source : state->sources)
    for (const Receive &receive : source)
      if (receive.transfer.buffer.defined())
        bytes += receive.transfer.buffer.nbytes();
  return bytes;
}

std::vector<std::string> C10d::gather(const std::string &text,
                                      milliseconds patience) {
  std::string round = concat("ppcc/", state->gatherings++, "/");
  state->store->set(concat(round, rank()), bytesOf(text));
  std::vector<std::string> result;
  for (uint32_t other = 0; other != numRanks(); ++other) {
    std::string key = concat(round, other);
    // A rank that has failed says so instead.
    ppcc::rt::await(
        patience, [&] { return state->store->check({key}); },
        [&] {
          if (std::string text = state->failureOr(""); !text.empty())
            throw PeerFailed{text};
        });
    std::vector<uint8_t> bytes = state->store->get(key);
    result.emplace_back(bytes.begin(), bytes.end());
  }
  return result;
}
