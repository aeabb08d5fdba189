#include "ppcc/Torch/C10d.h"

#include "TensorLayout.h"

#include "ppcc/Runtime/PollingWait.h"

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
      : open(numRanks), waiter([this] { drainLoop(); }) {}
  ~Sends() {
    abort();
    waiter.join();
  }

  void add(uint32_t to, Transfer &&transfer) {
    std::lock_guard lock(mutex);
    inFlight += transfer.buffer.nbytes();
    queue.push_back({to, std::move(transfer)});
    ++open[to];
    if (inFlight >= drainThreshold)
      drain();
  }

  /// Those to a rank, or all. False when they cannot end any more. Throws
  /// TimedOut.
  bool wait(milliseconds timeout, std::optional<uint32_t> to = {}) {
    auto done = [&] { return to ? open[*to] == 0 : queue.empty(); };
    std::unique_lock lock(mutex);
    if (!done())
      drain();
    if (!ended.wait_for(lock, timeout, [&] { return isBroken || done(); }))
      throw TimedOut();
    return done();
  }

  uint64_t bytes() {
    std::lock_guard lock(mutex);
    return inFlight;
  }

  /// Ends the waits.
  void abort() {
    std::lock_guard lock(mutex);
    stopping = true;
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
    if (!std::exchange(isDraining, true))
      wake.notify_one();
  }

  void drainLoop() {
    std::unique_lock lock(mutex);
    while (true) {
      isDraining &= !queue.empty();
      wake.wait(lock, [&] { return stopping || isDraining; });
      if (stopping)
        return;
      WorkPtr work = queue.front().transfer.work;
      lock.unlock();
      bool isSent = false;
      try {
        isSent = work->wait(forever);
      } catch (const std::exception &) {
      }
      lock.lock();
      if (!isSent || stopping) {
        isBroken = true;
        ended.notify_all();
        return;
      }
      size_t left = --open[queue.front().to];
      inFlight -= queue.front().transfer.buffer.nbytes();
      queue.pop_front();
      if (left == 0)
        ended.notify_all();
    }
  }

  static constexpr uint64_t drainThreshold = 1 << 14;

  std::mutex mutex;
  std::condition_variable wake, ended; ///< Of the thread; of who waits for it.
  std::deque<Send> queue;
  uint64_t inFlight = 0;    ///< Bytes of the queue.
  std::vector<size_t> open; ///< Sends to each rank that have not ended.
  bool stopping = false, isBroken = false;
  bool isDraining = false; ///< The thread waits until the queue is empty.
  std::thread waiter;
};

/// A receive that the engine has posted; ours may come later.
struct Receive {
  EdgeKey edge;
  Transfer transfer; ///< The size of the layout, or the message.
};

/// Messages with different tags have each an order of their own.
enum Tag : int { ProgramTag, SideChannelTag };

} // namespace

struct C10d::State {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  c10::intrusive_ptr<c10d::Store> store;
  const uint32_t rank = static_cast<uint32_t>(group->getRank());
  std::vector<std::deque<Receive>> sources = ///< By rank, in order.
      std::vector<std::deque<Receive>>(static_cast<size_t>(group->getSize()));
  std::map<EdgeKey, TensorLayout> sentLayouts{}, receivedLayouts{};
  std::unique_ptr<Sends> sends[2] = {newSends(), newSends()}; ///< By tag.
  bool isIdle = true;           ///< Nothing is under way.
  bool dynamicShapes = false;   ///< Each message tells its layout.
  at::Device device = at::kCPU; ///< Where what comes is laid.
  uint64_t gatherings = 0;

  uint32_t numRanks() const { return static_cast<uint32_t>(sources.size()); }
  std::unique_ptr<Sends> newSends() const {
    return std::make_unique<Sends>(numRanks());
  }

  /// Gloo carries memory of the host.
  static at::Tensor packed(const TensorLayout &layout,
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

  Message<Tensors> unpacked(const TensorLayout &layout,
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
      throwPeerExited(to);
    sends[tag]->add(to, {std::move(buffer), std::move(work)});
  }
  void postLayout(uint32_t to, const TensorLayout &layout, Tag tag) {
    std::string text = layout.serialize();
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

  /// Messages of a rank come in order, so nothing is posted after one whose
  /// layout is not known.
  void postAhead(uint32_t from) {
    for (Receive &receive : sources[from]) {
      auto known = receivedLayouts.find(receive.edge);
      bool isKnown = known != receivedLayouts.end();
      if (!receive.transfer.work)
        receive.transfer = postBytes(from,
                                     isKnown ? known->second.numBytes()
                                             : int64_t(sizeof(uint64_t)),
                                     ProgramTag);
      if (!isKnown)
        return;
    }
  }

  /// What postLayout() sent, of which `sizeOf` receives the first.
  TensorLayout receiveLayout(uint32_t from, const Transfer &sizeOf,
                             milliseconds timeout, Tag tag) {
    waitUntil(from, sizeOf, timeout);
    uint64_t size;
    std::memcpy(&size, sizeOf.buffer.data_ptr(), sizeof size);
    Transfer text = postBytes(from, static_cast<int64_t>(size), tag);
    waitUntil(from, text, timeout);
    return TensorLayout(
        std::string(static_cast<char *>(text.buffer.data_ptr()), size));
  }

  /// A message after its layout.
  Message<Tensors> receiveWithLayout(uint32_t from, const Transfer &sizeOf,
                                     milliseconds timeout, Tag tag) {
    TensorLayout layout = receiveLayout(from, sizeOf, timeout, tag);
    Transfer message = postBytes(from, layout.numBytes(), tag);
    waitUntil(from, message, timeout);
    return unpacked(layout, message.buffer);
  }

  /// c10d throws one and the same for a wait that was too long and for a
  /// connection that has closed.
  void waitUntil(uint32_t from, const Transfer &transfer,
                 milliseconds timeout) {
    if (!transfer.work)
      throwPeerExited(from);
    auto start = std::chrono::steady_clock::now();
    try {
      transfer.work->wait(timeout);
    } catch (const std::exception &) {
      if (std::chrono::steady_clock::now() - start >= timeout)
        throw TimedOut();
      throwPeerExited(from);
    }
  }

  [[noreturn]] void throwPeerExited(uint32_t other) {
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
                milliseconds timeout, const std::string &host) {
  // Gloo writes to connections that may have closed; Python ignores it, too.
  if (auto old = std::signal(SIGPIPE, SIG_IGN);
      old != SIG_DFL && old != SIG_ERR)
    std::signal(SIGPIPE, old);
  auto store = c10::make_intrusive<c10d::FileStore>(file, int(numRanks));
  store->setTimeout(timeout);
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->devices.push_back(
      c10d::ProcessGroupGloo::createDeviceForHostname(host));
  options->threads = 1;
  auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(
      store, int(rank), int(numRanks), options);
  // A rank that fails at once must not do so while others still connect: they
  // would not hear why.
  if (store->add(connectedKey, 1) == int64_t(numRanks))
    store->set(allKey, bytesOf("connected"));
  store->wait({allKey}, timeout);
  return C10d(std::move(group), store);
}

C10d::C10d(c10::intrusive_ptr<c10d::ProcessGroup> group,
           c10::intrusive_ptr<c10d::Store> store)
    : state(new State{std::move(group), std::move(store)}) {}
C10d::C10d(C10d &&) noexcept = default;
C10d::~C10d() {
  if (state && !state->isIdle)
    fail(concat("rank ", rank(), " has left"));
}

uint32_t C10d::rank() const { return state->rank; }
uint32_t C10d::numRanks() const { return state->numRanks(); }

void C10d::setDynamicShapes() { state->dynamicShapes = true; }
void C10d::setDevice(at::Device device) { state->device = device; }

void C10d::send(uint32_t to, Message<Tensors> &&message) {
  state->isIdle = false;
  TensorLayout layout(message.value);
  auto [known, isNew] =
      state->sentLayouts.try_emplace(edgeOf(message.label), layout);
  if (isNew || state->dynamicShapes)
    state->postLayout(to, layout, ProgramTag);
  else if (known->second != layout)
    throw std::runtime_error(
        "it carries " + layout.describe() + ", and the messages before it " +
        known->second.describe() +
        ": all microbatches must have the same types and shapes");
  state->post(to, State::packed(layout, message), ProgramTag);
}

void C10d::postReceive(uint32_t from, const Label &label, size_t) {
  state->isIdle = false;
  state->sources[from].push_back({edgeOf(label), {}});
  state->postAhead(from);
}

bool C10d::receive(uint32_t from, Message<Tensors> &into,
                   milliseconds timeout) {
  std::deque<Receive> &receives = state->sources[from];
  Transfer &first = receives.front().transfer;
  if (state->dynamicShapes) {
    into = state->receiveWithLayout(from, first, timeout, ProgramTag);
    receives.pop_front();
    state->postAhead(from);
    return true;
  }
  auto &layouts = state->receivedLayouts;
  EdgeKey edge = receives.front().edge;
  auto known = layouts.find(edge);
  if (known == layouts.end()) {
    TensorLayout layout =
        state->receiveLayout(from, first, timeout, ProgramTag);
    first = {};
    known = layouts.emplace(edge, std::move(layout)).first;
    state->postAhead(from);
  }
  state->waitUntil(from, first, timeout);
  into = state->unpacked(known->second, first.buffer);
  receives.pop_front();
  return true;
}

bool C10d::sendsMatched(uint32_t to, milliseconds timeout) {
  if (!state->sends[ProgramTag]->wait(timeout, to))
    state->throwPeerExited(to);
  return true;
}

void C10d::finish(milliseconds timeout) {
  for (const auto &sends : state->sends)
    if (!sends->wait(timeout))
      throw PeerFailed{state->failureOr("a rank has left")};
  state->isIdle = true;
}

void C10d::fail(const std::string &text) {
  state->isIdle = true;
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

void C10d::sendSideChannel(uint32_t to, Message<Tensors> &&message) {
  state->isIdle = false;
  TensorLayout layout(message.value);
  state->postLayout(to, layout, SideChannelTag);
  state->post(to, State::packed(layout, message), SideChannelTag);
}

Message<Tensors> C10d::receiveSideChannel(uint32_t from, milliseconds timeout) {
  Transfer size = state->postBytes(from, sizeof(uint64_t), SideChannelTag);
  return state->receiveWithLayout(from, size, timeout, SideChannelTag);
}

uint64_t C10d::bytesInFlight() const {
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
                                      milliseconds timeout) {
  std::string round = concat("ppcc/", state->gatherings++, "/");
  state->store->set(concat(round, rank()), bytesOf(text));
  std::vector<std::string> result;
  for (uint32_t other = 0; other != numRanks(); ++other) {
    std::string key = concat(round, other);
    // A rank that has failed says so instead.
    ppcc::rt::waitUntil(
        timeout, [&] { return state->store->check({key}); },
        [&] {
          if (std::string text = state->failureOr(""); !text.empty())
            throw PeerFailed{text};
        });
    std::vector<uint8_t> bytes = state->store->get(key);
    result.emplace_back(bytes.begin(), bytes.end());
  }
  return result;
}
