// A process a rank, with MPI. Needs libopenmpi-dev or another MPI 3.
#pragma once

#include "ppcc/Runtime/Engine.h"
#include "ppcc/Runtime/Transfers.h"

#include <bit>
#include <deque>
#include <memory>
#include <mpi.h>
#include <numeric>

namespace ppcc::rt {

/// A rank's end of an MPI communicator. Sends are MPI_Isend; with
/// WaitPolicy::Rendezvous each is an MPI_Issend that is waited for where it
/// stands, as MPI_Ssend does. All calls come from the thread that calls run();
/// MPI_Init must have been called. The tag of a message is its label, as far as
/// tags are wide enough.
///
/// Receives whose size the stage knows (`messageBytes`) are posted where they
/// stand; others wait for their message first.
template <class Value, size_t MaxChunk = INT32_MAX>
  requires HasBytes<Value>
class Mpi {
public:
  /// Collective. The communicator is duplicated, so that no message of the
  /// program meets one of the caller.
  explicit Mpi(MPI_Comm parent = MPI_COMM_WORLD) {
    MPI_Comm_dup(parent, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (MPI_Comm *own : {&control, &moves}) {
      MPI_Comm_dup(comm, own);
      MPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN);
    }
    int *most, isSet;
    MPI_Comm_get_attr(comm, MPI_TAG_UB, &most, &isSet);
    tagMask = std::bit_floor((isSet ? uint32_t(*most) : 32767u) + 1) - 1;
    MPI_Comm_rank(comm, &ownRank);
    MPI_Comm_size(comm, &size);
  }
  Mpi(const Mpi &) = delete;
  Mpi &operator=(const Mpi &) = delete;
  ~Mpi() {
    if (!failed)
      for (MPI_Comm *own : {&comm, &control, &moves})
        MPI_Comm_free(own);
  }

  uint32_t rank() const { return static_cast<uint32_t>(ownRank); }
  uint32_t numRanks() const { return static_cast<uint32_t>(size); }

  /// What each rank says; all say as many bytes. Collective.
  std::vector<std::string> gather(const std::string &text,
                                  milliseconds timeout) {
    struct Gathering {
      std::string own, all;
      MPI_Request request;
    };
    auto texts = std::make_unique<Gathering>();
    texts->own = text;
    texts->all.resize(text.size() * size_t(size));
    check(MPI_Iallgather(texts->own.data(), int(text.size()), MPI_CHAR,
                         texts->all.data(), int(text.size()), MPI_CHAR, control,
                         &texts->request),
          "MPI_Iallgather");
    try {
      waitUntil(timeout, [&] { return isDone(texts->request); });
    } catch (...) {
      leak(std::move(texts)); // MPI may still write to it.
      throw;
    }
    return splitEqually(texts->all, text.size());
  }

  /// Exchanges an empty message with another rank, which opens the connection.
  void connect(uint32_t other, milliseconds timeout) {
    MPI_Request both[2];
    check(MPI_Isend(nullptr, 0, MPI_BYTE, int(other), connectTag, control,
                    &both[0]),
          "MPI_Isend");
    check(MPI_Irecv(nullptr, 0, MPI_BYTE, int(other), connectTag, control,
                    &both[1]),
          "MPI_Irecv");
    waitUntil(timeout, [&] { return isDone(both[0]) && isDone(both[1]); });
  }

  /// Whether sends are to end when their receives are posted.
  void setRendezvous(bool will) { isRendezvous = will; }

  void send(uint32_t to, Message<Value> &&message) {
    Transfer &transfer = transfers.newSend(to);
    transfer.message.value = std::move(message.value);
    Type type(Bytes<Value>::of(transfer.message.value));
    auto *post = isRendezvous ? MPI_Issend : MPI_Isend;
    check(post(type.data, type.count, type, int(to), tagOf(message.label),
               commOf(message.label), &transfer.request),
          isRendezvous ? "MPI_Issend" : "MPI_Isend");
    completeSends();
  }

  void postReceive(uint32_t from, const Label &label, size_t bytes) {
    // What is posted takes the next message, so nothing may overtake a receive
    // that is not posted.
    std::deque<Transfer> &posted = transfers.receives(from);
    bool inOrder = posted.empty() || posted.back().request != MPI_REQUEST_NULL;
    Transfer &transfer = transfers.newReceive(from, label);
    transfer.request = MPI_REQUEST_NULL;
    if (bytes != 0 && inOrder)
      post(transfer, bytes);
  }

  bool receive(uint32_t from, Message<Value> &into, milliseconds timeout) {
    checkPeerFailure();
    std::deque<Transfer> &posted = transfers.receives(from);
    Transfer &transfer = posted.front();
    Value &value = transfer.message.value;
    MPI_Status status;
    if (transfer.request == MPI_REQUEST_NULL)
      receiveUnposted(transfer, status, timeout);
    else
      waitUntil(timeout, [&] { return isDone(transfer.request, &status); });
    if (size_t bytes = sizeOf(status); bytes < Bytes<Value>::of(value).size())
      Bytes<Value>::resize(value, bytes);
    if (status.MPI_TAG != tagOf(into.label)) {
      uint8_t slot = into.label.slot;
      into.label = labelOf(status.MPI_TAG);
      if (slot >= Label::firstMove)
        into.label.slot = slot;
    }
    into.value = std::move(value);
    posted.pop_front();
    return true;
  }

  /// A later receive gets the memory.
  void recycle(Value &&value) { transfers.recycle(std::move(value)); }

  bool sendsMatched(uint32_t to, milliseconds timeout) {
    waitUntil(timeout, [&] {
      return transfers.allSent(
          to, [](MPI_Request &allSent) { return isDone(allSent); });
    });
    return true;
  }

  void finish(milliseconds timeout) {
    waitUntil(timeout, [&] { return completeSends(); });
  }

  /// The text goes to every rank, each of which stops at its next wait.
  void fail(const std::string &text) {
    failed = true;
    leak(std::make_unique<Transfers<Value, MPI_Request>>(
        std::exchange(transfers, {}))); // MPI may still write to them.
    if (sawPeerFailure)
      return;
    auto sent = std::make_unique<std::string>(text);
    for (int rank = 0; rank != size; ++rank) {
      MPI_Request request;
      if (rank != ownRank &&
          MPI_Isend(sent->data(), int(sent->size()), MPI_CHAR, rank, failureTag,
                    control, &request) == MPI_SUCCESS)
        MPI_Request_free(&request);
    }
    leak(std::move(sent));
  }

  /// Brings what all ranks recorded to rank 0. Collective, after runs that
  /// went well. Times are put right by the difference of the clocks, which is
  /// known to half of the shortest of some round trips.
  void gather(Trace &trace) {
    if (trace.numRanks() != numRanks())
      throw Error(concat("the trace is for ", trace.numRanks(),
                         " ranks, the communicator has ", size));
    std::vector<int64_t> ahead = clockOffsets();
    MPI_Datatype record;
    MPI_Type_contiguous(sizeof(TraceEvent), MPI_BYTE, &record);
    MPI_Type_commit(&record);
    const Recorder &own = trace.rank(rank());
    int count = int(own.all().size()), overlaps = own.concurrent();
    std::vector<int> counts(numRanks()), starts(numRanks()),
        concurrent(numRanks());
    MPI_Gather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, comm);
    MPI_Gather(&overlaps, 1, MPI_INT, concurrent.data(), 1, MPI_INT, 0, comm);
    std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
    std::vector<TraceEvent> all(
        ownRank == 0 ? size_t(starts.back() + counts.back()) : 0);
    MPI_Gatherv(own.all().data(), count, record, all.data(), counts.data(),
                starts.data(), record, 0, comm);
    for (int from = 1; ownRank == 0 && from != size; ++from) {
      auto first = all.begin() + starts[size_t(from)];
      trace.rank(uint32_t(from))
          .replaceEvents({first, first + counts[size_t(from)]},
                         concurrent[size_t(from)] != 0, ahead[size_t(from)]);
    }
    MPI_Type_free(&record);
  }

  /// Ends all processes, after run()'s exception: gives the other ranks
  /// `grace` to report theirs, then calls MPI_Abort. MPI cannot be finalized
  /// after a failure, as there are messages that nobody will receive.
  [[noreturn]] void abort(int code,
                          milliseconds abortTimeout = milliseconds(2000)) {
    MPI_Request all;
    if (MPI_Ibarrier(comm, &all) == MPI_SUCCESS) {
      auto end = std::chrono::steady_clock::now() + abortTimeout;
      while (!isDone(all) && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(milliseconds(1));
    }
    MPI_Abort(comm, code);
    std::abort();
  }

private:
  static constexpr int failureTag = 1, connectTag = 2, traceTag = 3;

  using Transfer = rt::Transfer<Value, MPI_Request>;

  /// Bytes as MPI counts them: more than an int holds are a type of their own.
  class Type {
  public:
    Type(std::span<std::byte> bytes)
        : data(bytes.data()), count(static_cast<int>(bytes.size())) {
      if (bytes.size() <= maxChunk)
        return;
      MPI_Datatype part;
      MPI_Type_contiguous(static_cast<int>(maxChunk), MPI_BYTE, &part);
      size_t parts = bytes.size() / maxChunk;
      int lengths[] = {static_cast<int>(parts),
                       static_cast<int>(bytes.size() % maxChunk)};
      MPI_Aint at[] = {0, static_cast<MPI_Aint>(parts * maxChunk)};
      MPI_Datatype types[] = {part, MPI_BYTE};
      MPI_Type_create_struct(2, lengths, at, types, &type);
      MPI_Type_commit(&type);
      MPI_Type_free(&part);
      count = 1;
    }
    Type(const Type &) = delete;
    Type &operator=(const Type &) = delete;
    /// MPI keeps it as long as it is used.
    ~Type() {
      if (type != MPI_BYTE)
        MPI_Type_free(&type);
    }
    operator MPI_Datatype() const { return type; }

    std::byte *data;
    int count;

  private:
    MPI_Datatype type = MPI_BYTE;
  };
  static size_t sizeOf(const MPI_Status &status) {
    MPI_Count bytes;
    MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    return static_cast<size_t>(bytes);
  }

  MPI_Comm commOf(const Label &label) const {
    return label.isMove() ? moves : comm;
  }
  /// The label in 31 bits; the low bits of what is larger.
  int tagOf(const Label &label) const {
    uint32_t bits = (label.microbatch & 0x3FFF) << 17 |
                    (label.from & 0x7Fu) << 10 | (label.to & 0x7Fu) << 3 |
                    (label.pipe & 3u) << 1 | (label.slot == slot::Output);
    return static_cast<int>(bits & tagMask);
  }
  /// What a tag tells of its label.
  static Label labelOf(int tag) {
    auto bits = static_cast<uint32_t>(tag);
    return {static_cast<uint8_t>(bits >> 1 & 3),
            bits & 1 ? slot::Output : slot::InputGrad,
            static_cast<uint16_t>(bits >> 10 & 0x7F),
            static_cast<uint16_t>(bits >> 3 & 0x7F), bits >> 17};
  }

  static void check(int code, const char *what) {
    if (code == MPI_SUCCESS)
      return;
    int errorClass;
    MPI_Error_class(code, &errorClass);
    if (errorClass == MPI_ERR_TRUNCATE)
      throw std::runtime_error("it has more bytes than are expected");
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    throw std::runtime_error(std::string(what) + ": " +
                             std::string(text, size_t(length)));
  }

  /// By rank, how far its clock is ahead of that of rank 0, where that is
  /// measured. Collective.
  std::vector<int64_t> clockOffsets() const {
    std::vector<int64_t> offsets(static_cast<size_t>(size));
    for (int other = 1; other != size; ++other)
      for (int64_t i = 0, shortest = INT64_MAX; i != 16; ++i) {
        int64_t start = Recorder::now(), there = start;
        if (ownRank == 0) {
          MPI_Send(nullptr, 0, MPI_BYTE, other, traceTag, comm);
          MPI_Recv(&there, 1, MPI_INT64_T, other, traceTag, comm,
                   MPI_STATUS_IGNORE);
        } else if (ownRank == other) {
          MPI_Recv(nullptr, 0, MPI_BYTE, 0, traceTag, comm, MPI_STATUS_IGNORE);
          int64_t now = Recorder::now();
          MPI_Send(&now, 1, MPI_INT64_T, 0, traceTag, comm);
        }
        int64_t took = Recorder::now() - start;
        if (took >= shortest)
          continue;
        shortest = took;
        int64_t offset = there - (start + took / 2);
        // Clocks that cannot be told apart are one.
        offsets[size_t(other)] = std::abs(offset) <= took / 2 + 1 ? 0 : offset;
      }
    return offsets;
  }

  static bool isDone(MPI_Request &request,
                     MPI_Status *status = MPI_STATUS_IGNORE) {
    int done;
    check(MPI_Test(&request, &done, status), "MPI_Test");
    return done;
  }
  /// Whether none is left.
  bool completeSends() {
    transfers.completeSends(
        [](MPI_Request &sent) { return isDone(sent); },
        [&](Transfer &sent) { transfers.pool(std::move(sent.message.value)); });
    return transfers.sends.empty();
  }

  /// MPI has no wait with a limit, and tests are what moves its messages.
  template <class Done> void waitUntil(milliseconds timeout, Done done) {
    rt::waitUntil(timeout, done, [&] { checkPeerFailure(); });
  }

  /// Throws when another rank has said that it failed.
  void checkPeerFailure() {
    int arrived;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, failureTag, control, &arrived, &status);
    if (!arrived)
      return;
    int length;
    MPI_Get_count(&status, MPI_CHAR, &length);
    std::string text(size_t(length), ' ');
    MPI_Recv(text.data(), length, MPI_CHAR, status.MPI_SOURCE, failureTag,
             control, MPI_STATUS_IGNORE);
    sawPeerFailure = true;
    throw PeerFailed{text};
  }

  void post(Transfer &transfer, size_t bytes) {
    Type type(transfer.allocate(bytes));
    check(MPI_Irecv(type.data, type.count, type, int(transfer.peer),
                    MPI_ANY_TAG, commOf(transfer.message.label),
                    &transfer.request),
          "MPI_Irecv");
  }
  /// Waits for a message and receives it with the size that it has.
  void receiveUnposted(Transfer &transfer, MPI_Status &status,
                       milliseconds timeout) {
    MPI_Message arrived;
    waitUntil(timeout, [&] {
      int found;
      check(MPI_Improbe(int(transfer.peer), MPI_ANY_TAG,
                        commOf(transfer.message.label), &found, &arrived,
                        &status),
            "MPI_Improbe");
      return found;
    });
    Type type(transfer.allocate(sizeOf(status)));
    check(MPI_Imrecv(type.data, type.count, type, &arrived, &transfer.request),
          "MPI_Imrecv");
    waitUntil(timeout, [&] { return isDone(transfer.request, &status); });
  }

  template <class T> static void leak(std::unique_ptr<T> kept) {
    static std::deque<std::unique_ptr<T>> &all =
        *new std::deque<std::unique_ptr<T>>();
    all.push_back(std::move(kept));
  }

  /// More bytes than these are not counted by an int.
  static constexpr size_t maxChunk = MaxChunk;

  MPI_Comm comm = MPI_COMM_NULL;
  /// For all but the messages of the program.
  MPI_Comm control = MPI_COMM_NULL;
  /// What actions move has an order of its own.
  MPI_Comm moves = MPI_COMM_NULL;
  int ownRank = 0, size = 0;
  uint32_t tagMask = 0; ///< Bits of a tag.
  bool failed = false, sawPeerFailure = false, isRendezvous = true;
  Transfers<Value, MPI_Request> transfers;
};

} // namespace ppcc::rt
