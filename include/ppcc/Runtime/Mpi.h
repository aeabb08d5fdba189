// A process a rank, with MPI. Needs libopenmpi-dev or another MPI 3.
#pragma once

#include "ppcc/Runtime/Await.h"
#include "ppcc/Runtime/Engine.h"

#include <deque>
#include <memory>
#include <mpi.h>
#include <numeric>

namespace ppcc::rt {

/// A rank's end of an MPI communicator. Sends are MPI_Issend: what a program
/// needs in buffers, it holds itself. With Waits::Here each send is waited for
/// where it stands, as MPI_Ssend does. All calls come from the thread that
/// calls run(); MPI_Init must have been called.
///
/// Receives whose size the stage knows (`messageBytes`) are posted where they
/// stand; others wait for their message first.
template <class Value>
  requires HasBytes<Value>
class Mpi {
public:
  /// Collective. The communicator is duplicated, so that no message of the
  /// program meets one of the caller.
  explicit Mpi(MPI_Comm parent = MPI_COMM_WORLD) {
    MPI_Comm_dup(parent, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_dup(comm, &gathering);
    MPI_Comm_rank(comm, &ownRank);
    MPI_Comm_size(comm, &size);
  }
  Mpi(const Mpi &) = delete;
  Mpi &operator=(const Mpi &) = delete;
  ~Mpi() {
    if (!failed)
      for (MPI_Comm *own : {&comm, &gathering})
        MPI_Comm_free(own);
  }

  uint32_t rank() const { return static_cast<uint32_t>(ownRank); }
  uint32_t numRanks() const { return static_cast<uint32_t>(size); }

  /// What each rank says; all say as many bytes. Collective.
  std::vector<std::string> gather(const std::string &text,
                                  std::chrono::milliseconds patience) {
    struct Gathering {
      std::string own, all;
      MPI_Request request;
    };
    auto texts = std::make_unique<Gathering>();
    texts->own = text;
    texts->all.resize(text.size() * size_t(size));
    check(MPI_Iallgather(texts->own.data(), int(text.size()), MPI_CHAR,
                         texts->all.data(), int(text.size()), MPI_CHAR,
                         gathering, &texts->request),
          "MPI_Iallgather");
    try {
      await(patience, [&] { return isDone(texts->request); });
    } catch (...) {
      keepForever(std::move(texts)); // MPI may still write to it.
      throw;
    }
    return split(texts->all, text.size());
  }

  /// Exchanges an empty message with another rank, which opens the connection.
  void connect(uint32_t other, std::chrono::milliseconds patience) {
    MPI_Request both[2];
    check(
        MPI_Isend(nullptr, 0, MPI_BYTE, int(other), connectTag, comm, &both[0]),
        "MPI_Isend");
    check(
        MPI_Irecv(nullptr, 0, MPI_BYTE, int(other), connectTag, comm, &both[1]),
        "MPI_Irecv");
    await(patience, [&] { return isDone(both[0]) && isDone(both[1]); });
  }

  void send(uint32_t to, Message<Value> &&message) {
    while (!sends.empty() && isDone(sends.front()->request))
      reuse(sends.pop());
    Transfer transfer = fresh();
    transfer->peer = to;
    transfer->message = std::move(message);
    transfer->bytes = Bytes<Value>::of(transfer->message.value).size();
    transfer->describe();
    check(MPI_Issend(MPI_BOTTOM, 1, transfer->type, int(to), messageTag, comm,
                     &transfer->request),
          "MPI_Issend");
    sends.push(std::move(transfer));
  }

  void postReceive(uint32_t from, const Label &, size_t bytes) {
    Fifo<Transfer> &posted = receives.of(from);
    Transfer transfer = fresh();
    transfer->peer = from;
    mostLent = std::max(mostLent, ++lent);
    if (!buffers.empty()) {
      transfer->message.value = std::move(buffers.back());
      buffers.pop_back();
    }
    // What is posted takes the next message, so nothing may overtake a receive
    // that is not posted.
    bool inOrder = posted.empty() ||
                   posted[posted.size() - 1]->request != MPI_REQUEST_NULL;
    transfer->expected = bytes;
    if (bytes != 0 && inOrder)
      post(*transfer);
    posted.push(std::move(transfer));
  }

  bool receive(uint32_t from, Message<Value> &into,
               std::chrono::milliseconds patience) {
    listen();
    Transfer &transfer = receives.of(from).front();
    if (transfer->request == MPI_REQUEST_NULL)
      takeUnposted(*transfer, patience);
    else
      await(patience, [&] { return isDone(transfer->request); });
    if (transfer->bytes < Bytes<Value>::of(transfer->message.value).size())
      Bytes<Value>::resize(transfer->message.value, transfer->bytes);
    into.label = transfer->message.label;
    into.value = std::move(transfer->message.value);
    reuse(receives.of(from).pop());
    return true;
  }

  /// A later receive gets the memory.
  void recycle(Value &&value) {
    --lent;
    pool(std::move(value));
  }

  bool sendsMet(uint32_t to, std::chrono::milliseconds patience) {
    await(patience, [&] {
      for (size_t i = 0; i != sends.size(); ++i)
        if (sends[i]->peer == to && !isDone(sends[i]->request))
          return false;
      return true;
    });
    return true;
  }

  void finish(std::chrono::milliseconds patience) {
    await(patience, [&] {
      while (!sends.empty() && isDone(sends.front()->request))
        reuse(sends.pop());
      return sends.empty();
    });
  }

  /// The text goes to every rank, each of which stops at its next wait.
  void fail(const std::string &text) {
    failed = true;
    abandon();
    if (heard)
      return;
    auto sent = std::make_unique<std::string>(text);
    for (int rank = 0; rank != size; ++rank) {
      MPI_Request request;
      if (rank != ownRank &&
          MPI_Isend(sent->data(), int(sent->size()), MPI_CHAR, rank, failureTag,
                    comm, &request) == MPI_SUCCESS)
        MPI_Request_free(&request);
    }
    keepForever(std::move(sent));
  }

  /// Brings what all ranks recorded to rank 0. Collective, behind runs that
  /// went well. Times of other machines are put right by the difference of the
  /// clocks, which is known to half of the shortest of some round trips.
  void gather(Trace &trace) {
    static constexpr int roundTrips = 16;
    if (trace.numRanks() != numRanks())
      throw Error("the trace is for " + std::to_string(trace.numRanks()) +
                  " ranks, the communicator has " + std::to_string(size));
    MPI_Datatype record;
    MPI_Type_contiguous(sizeof(TraceEvent), MPI_BYTE, &record);
    MPI_Type_commit(&record);
    std::vector<bool> sameMachine = ranksOfThisMachine();
    if (ownRank != 0) {
      const Recorder &own = trace.rank(rank());
      for (int i = 0; i != roundTrips; ++i) {
        MPI_Recv(nullptr, 0, MPI_BYTE, 0, traceTag, comm, MPI_STATUS_IGNORE);
        int64_t time = Recorder::now();
        MPI_Send(&time, 1, MPI_INT64_T, 0, traceTag, comm);
      }
      char together = own.together();
      MPI_Send(&together, 1, MPI_CHAR, 0, traceTag, comm);
      MPI_Send(own.all().data(), int(own.all().size()), record, 0, traceTag,
               comm);
    }
    for (int from = 1; ownRank == 0 && from != size; ++from) {
      int64_t shortest = INT64_MAX, ahead = 0;
      for (int i = 0; i != roundTrips; ++i) {
        int64_t start = Recorder::now(), there;
        MPI_Send(nullptr, 0, MPI_BYTE, from, traceTag, comm);
        MPI_Recv(&there, 1, MPI_INT64_T, from, traceTag, comm,
                 MPI_STATUS_IGNORE);
        int64_t took = Recorder::now() - start;
        if (took < shortest) {
          shortest = took;
          ahead = there - (start + took / 2);
        }
      }
      // One machine has one clock, unless what was measured says otherwise:
      // containers may set theirs apart.
      if (sameMachine[size_t(from)] && std::abs(ahead) <= shortest / 2 + 1)
        ahead = 0;
      char together;
      MPI_Recv(&together, 1, MPI_CHAR, from, traceTag, comm, MPI_STATUS_IGNORE);
      MPI_Status status;
      MPI_Probe(from, traceTag, comm, &status);
      int count;
      MPI_Get_count(&status, record, &count);
      std::vector<TraceEvent> events(static_cast<size_t>(count));
      MPI_Recv(events.data(), count, record, from, traceTag, comm,
               MPI_STATUS_IGNORE);
      trace.rank(uint32_t(from)).take(std::move(events), together, ahead);
    }
    MPI_Type_free(&record);
  }

  /// Ends all processes, behind run()'s exception: gives the other ranks
  /// `grace` to report theirs, then calls MPI_Abort. MPI cannot be finalized
  /// after a failure, as there are messages that nobody will receive.
  [[noreturn]] void
  abort(int code,
        std::chrono::milliseconds grace = std::chrono::milliseconds(2000)) {
    MPI_Request all;
    if (MPI_Ibarrier(comm, &all) == MPI_SUCCESS) {
      auto end = std::chrono::steady_clock::now() + grace;
      while (!isDone(all) && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    MPI_Abort(comm, code);
    std::abort();
  }

private:
  static constexpr int messageTag = 0, failureTag = 1, connectTag = 2,
                       traceTag = 3;

  /// A message under way. It keeps its address, which MPI knows.
  struct Moving {
    Message<Value> message{};
    uint64_t bytes = 0; ///< Of the value, as the sender says; sent along.
    size_t expected = 0;
    uint32_t peer = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype type = MPI_DATATYPE_NULL;

    /// Makes `type` the label, the size and the bytes of the value, where they
    /// lie: nothing is copied.
    void describe() {
      std::span<std::byte> data = Bytes<Value>::of(message.value);
      if (data.size() > INT32_MAX)
        throw std::runtime_error("a message of " + std::to_string(data.size()) +
                                 " bytes is too large for MPI");
      int lengths[] = {sizeof(Label), sizeof bytes, int(data.size())};
      MPI_Aint at[3];
      MPI_Get_address(&message.label, &at[0]);
      MPI_Get_address(&bytes, &at[1]);
      MPI_Get_address(data.data(), &at[2]);
      MPI_Datatype types[] = {MPI_BYTE, MPI_BYTE, MPI_BYTE};
      freeType();
      MPI_Type_create_struct(3, lengths, at, types, &type);
      MPI_Type_commit(&type);
    }
    void freeType() {
      if (type != MPI_DATATYPE_NULL)
        MPI_Type_free(&type);
    }
  };
  using Transfer = std::unique_ptr<Moving>;

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

  /// For each rank whether it is a process of this rank's machine. Collective.
  std::vector<bool> ranksOfThisMachine() const {
    MPI_Comm machine;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Group all, here;
    MPI_Comm_group(comm, &all);
    MPI_Comm_group(machine, &here);
    std::vector<int> ranks(size_t(size), 0), found(size_t(size), 0);
    std::iota(ranks.begin(), ranks.end(), 0);
    MPI_Group_translate_ranks(all, size, ranks.data(), here, found.data());
    MPI_Group_free(&here);
    MPI_Group_free(&all);
    MPI_Comm_free(&machine);
    std::vector<bool> isHere;
    for (int rank : found)
      isHere.push_back(rank != MPI_UNDEFINED);
    return isHere;
  }

  static bool isDone(MPI_Request &request) {
    int done;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done;
  }

  /// MPI has no wait with a limit, and tests are what moves its messages.
  template <class Done>
  void await(std::chrono::milliseconds patience, Done done) {
    rt::await(patience, done, [&] { listen(); });
  }

  /// Throws when another rank has said that it failed.
  void listen() {
    int arrived;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, failureTag, comm, &arrived, &status);
    if (!arrived)
      return;
    int length;
    MPI_Get_count(&status, MPI_CHAR, &length);
    std::string text(size_t(length), ' ');
    MPI_Recv(text.data(), length, MPI_CHAR, status.MPI_SOURCE, failureTag, comm,
             MPI_STATUS_IGNORE);
    heard = true;
    throw PeerFailed{text};
  }

  void post(Moving &transfer) {
    if (!Bytes<Value>::resize(transfer.message.value, transfer.expected))
      throw std::runtime_error("values have no size of " +
                               std::to_string(transfer.expected) + " bytes");
    transfer.describe();
    check(MPI_Irecv(MPI_BOTTOM, 1, transfer.type, int(transfer.peer),
                    messageTag, comm, &transfer.request),
          "MPI_Irecv");
  }

  /// Waits for a message and receives it with the size that it has.
  void takeUnposted(Moving &transfer, std::chrono::milliseconds patience) {
    MPI_Message arrived;
    MPI_Status status;
    await(patience, [&] {
      int found;
      check(MPI_Improbe(int(transfer.peer), messageTag, comm, &found, &arrived,
                        &status),
            "MPI_Improbe");
      return found;
    });
    int length;
    MPI_Get_count(&status, MPI_BYTE, &length);
    constexpr int head = sizeof(Label) + sizeof(uint64_t);
    if (length < head ||
        !Bytes<Value>::resize(transfer.message.value, size_t(length - head)))
      throw std::runtime_error("a message of " + std::to_string(length) +
                               " bytes is none of this program");
    transfer.describe();
    check(MPI_Imrecv(MPI_BOTTOM, 1, transfer.type, &arrived, &transfer.request),
          "MPI_Imrecv");
    await(patience, [&] { return isDone(transfer.request); });
  }

  Transfer fresh() {
    if (unused.empty())
      return std::make_unique<Moving>();
    Transfer transfer = std::move(unused.back());
    unused.pop_back();
    return transfer;
  }
  void reuse(Transfer transfer) {
    transfer->freeType();
    pool(std::exchange(transfer->message.value, Value()));
    unused.push_back(std::move(transfer));
  }

  /// Keeps the memory of a value for a receive, unless there is as much as the
  /// receives ever needed: no more than the program's `receiveBuffers`, which
  /// the engine watches over.
  void pool(Value &&value) {
    if (buffers.size() + lent < mostLent && !Bytes<Value>::of(value).empty())
      buffers.push_back(std::move(value));
  }

  /// Gives up all that is under way. MPI may still write to it.
  void abandon() {
    receives.forEach([](Fifo<Transfer> &posted) {
      while (!posted.empty())
        keepForever(posted.pop());
    });
    while (!sends.empty())
      keepForever(sends.pop());
  }
  template <class T> static void keepForever(std::unique_ptr<T> kept) {
    static std::deque<std::unique_ptr<T>> &all =
        *new std::deque<std::unique_ptr<T>>();
    all.push_back(std::move(kept));
  }

  MPI_Comm comm = MPI_COMM_NULL;
  /// For gather(): a rank that has failed goes to another meeting, in abort().
  MPI_Comm gathering = MPI_COMM_NULL;
  int ownRank = 0, size = 0;
  bool failed = false, heard = false;
  Fifo<Transfer> sends;          ///< In their order.
  FifoByRank<Transfer> receives; ///< By source.
  std::vector<Transfer> unused;
  std::vector<Value> buffers; ///< The pool: memory for receives.
  /// Receives that are posted and not yet read, and the most of them.
  size_t lent = 0, mostLent = 0;
};

} // namespace ppcc::rt
