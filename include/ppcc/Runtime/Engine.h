// Executes the program of a rank, whatever the stage computes and whatever
// carries the messages.
#pragma once

#include "ppcc/Runtime/Call.h"
#include "ppcc/Runtime/Crew.h"
#include "ppcc/Runtime/Digest.h"
#include "ppcc/Runtime/Endpoint.h"
#include "ppcc/Runtime/Fifo.h"
#include "ppcc/Runtime/Recorder.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <list>
#include <optional>

namespace ppcc::rt {

/// When a rank waits for its messages.
enum class Waits : uint8_t {
  /// For a receive before the action that reads it, for a send at the end.
  Late,
  /// For both where they stand; a send ends when its receive is posted. This is
  /// the transport that the compiler calls `rendezvous`.
  Here,
};

/// How the members of an overlap group run.
enum class Overlap : uint8_t {
  InTurn,
  /// In threads of their own: the stage must allow calls at the same time for
  /// different stages or microbatches.
  Together,
};

struct Options {
  Waits waits = Waits::Late;
  Overlap overlap = Overlap::InTurn;
  /// The limit of one wait for another rank.
  std::chrono::milliseconds patience = std::chrono::minutes(10);
  /// Notes when what is done, if there is one.
  Trace *trace = nullptr;
};

/// Runs the linked list of one rank, item by item: an item is an action or a
/// group. It can stop at any wait, so that one thread can run all ranks.
template <Stage S, Endpoint<typename S::Value> E> class RankRunner {
public:
  using Value = typename S::Value;
  enum class Progress { Blocked, Done };

  /// Checks the program; throws Error when it does not fit.
  RankRunner(const Program &program, uint32_t rank, S &stage, E &endpoint,
             const Options &options = {})
      : program(program), rank(rank), stage(stage), endpoint(endpoint),
        options(options), linked(checked(program, rank, endpoint), rank),
        list(program.ranks[rank]) {
    if constexpr (requires { requires E::untagged; })
      for (const Role &role : linked.wiring.roles())
        if (role.label.isMove())
          throw Error("messages without labels cannot carry what `" +
                      std::string(role.kind->letters) +
                      "` moves between ranks");
    if (options.trace && options.trace->numRanks() != program.numRanks)
      throw Error(
          "the trace is for " + std::to_string(options.trace->numRanks()) +
          " ranks, the program for " + std::to_string(program.numRanks));
    if (options.trace)
      recorder = &options.trace->rank(rank);
  }

  /// Waits until all ranks have come, and compares the digests of what they are
  /// about to run. Throws Disagreement, or another Error.
  void agree(const std::string &digest) {
    if constexpr (requires { endpoint.gather(digest, options.patience); })
      waitOutside("the programs of the other ranks", [&] {
        std::vector<std::string> all =
            endpoint.gather(digest, options.patience);
        for (size_t other = 0; other != all.size(); ++other)
          if (all[other] != digest)
            throw disagreement(rank, digest, static_cast<uint32_t>(other),
                               all[other]);
      });
  }
  static Disagreement disagreement(uint32_t rank, const std::string &digest,
                                   uint32_t other,
                                   const std::string &otherDigest) {
    return Disagreement(rank, "", "",
                        "its program has the digest " + digest +
                            ", that of rank " + std::to_string(other) +
                            " has the digest " + otherDigest +
                            ": all ranks must run the same");
  }

  /// Links the program, which all ranks have; throws Error when its order is
  /// wrong.
  void link() {
    linked.link(program, rank);
    if constexpr (requires { endpoint.willMeet(true); })
      endpoint.willMeet(options.waits == Waits::Here);
    cells = std::make_unique<Held<Value>[]>(linked.numCells);
    for (uint32_t partner : linked.wiring.partners())
      sources.push_back({partner});
    calls.emplace_back(program, rank, linked);
    rewind();
  }

  /// Opens the connections to other ranks, in the order that the program says,
  /// where the transport opens any. Throws Error.
  void connect() {
    if constexpr (requires { endpoint.connect(rank, options.patience); })
      for (RankPair pair : program.preconnect) {
        if (pair.first != rank && pair.second != rank)
          continue;
        uint32_t other = pair.first == rank ? pair.second : pair.first;
        waitOutside("the connection to rank " + std::to_string(other),
                    [&] { endpoint.connect(other, options.patience); });
      }
  }

  /// Goes back to the first action, for the next run.
  void rewind() {
    enter(0);
    coming.clear();
    if (recorder)
      recorder->begin(list, options.overlap == Overlap::Together);
  }

  /// Goes on until a message that is not here, or the end. Throws Error.
  Progress step() {
    while (at) {
      const Operation &item = *at;
      if (!coming.empty() && !isOpen && !ran && !hasCome(&item))
        return Progress::Blocked;
      if (!ran && !(item.members == 1 ? runAlone(item) : runGroup(item)))
        return Progress::Blocked;
      if (options.waits == Waits::Here) [[unlikely]] {
        ran = true;
        if (!waitHere({&item, item.members}))
          return Progress::Blocked;
        ran = false;
      }
      at += item.members;
      if (at == turnEnd)
        nextTurn();
    }
    return hasCome(nullptr) ? Progress::Done : Progress::Blocked;
  }

  /// What a run does.
  const Stats &stats() const { return linked.counts; }

  /// Waits until the sends have ended. Throws Error.
  void finish() {
    waitOutside("the end of its last sends",
                [&] { endpoint.finish(options.patience); });
  }

  /// For what a blocked rank waits, in words; and for whom.
  std::string waitsFor() const {
    std::string place = placeOf(program, rowOf(*current).site);
    return "rank " + std::to_string(rank) + " waits in " +
           cell(program, rowOf(*current)) +
           (place.empty() ? "" : " (" + place + ")") + " for " + awaitedText();
  }

private:
  using Call = rt::Call<S>;
  using Item = std::span<const Operation>;

  /// A rank that sends to this one, and the receives posted for it, in order.
  struct Source {
    uint32_t rank;
    Held<Value> *first = nullptr, *last = nullptr;
    std::vector<Message<Value>> early{}; ///< Messages before their turn.

    void post(Held<Value> &held) {
      held.next = nullptr;
      (first ? last->next : first) = &held;
      last = &held;
    }
  };
  /// What another rank moves to this one.
  struct Coming {
    const Operation *operation = nullptr;
    Label label{};
    Held<Value> held{};
  };

  static const Program &checked(const Program &program, uint32_t rank,
                                E &endpoint) {
    checkStages(program, endpoint.numRanks());
    if (rank >= program.numRanks)
      throw Error("there is no rank " + std::to_string(rank));
    return program;
  }

  /// Calls a wait of the transport before or after all actions.
  template <class Wait>
  void waitOutside(const std::string &awaited, Wait waitFor) {
    try {
      waitFor();
    } catch (const TimedOut &) {
      throw Error(rank, "", "",
                  "has waited " + std::to_string(options.patience.count()) +
                      " ms for " + awaited);
    } catch (const PeerFailed &failure) {
      throw PeerError(rank, "", "", failure.text);
    } catch (const Error &) {
      throw;
    } catch (const std::exception &error) {
      throw Error(rank, "", "", awaited + ": " + error.what());
    }
  }

  // The list.

  void enter(size_t number) {
    loop = number;
    turns = shift = 0;
    at = nullptr;
    if (loop != linked.loops.size())
      beginTurn();
  }
  void beginTurn() {
    const Segment &segment = linked.loops[loop];
    at = linked.operations.data() + segment.firstRow;
    turnEnd = at + segment.rows;
  }
  void nextTurn() {
    if (++turns == linked.loops[loop].count)
      return enter(loop + 1);
    // The sum may pass zero on its way; what it is added to may not.
    shift += static_cast<uint32_t>(linked.loops[loop].advance);
    beginTurn();
  }

  const Role &roleOf(const Operation &operation) const {
    return linked.wiring.role(operation.role);
  }
  uint32_t microbatchOf(const Operation &operation) const {
    return operation.microbatch + shift;
  }
  Row rowOf(const Operation &operation) const {
    Row row = list.row(operation.row);
    row.microbatch = microbatchOf(operation);
    return row;
  }
  /// Of what a message moves.
  Held<Value> &cellOf(const Role &role, uint32_t microbatch) {
    return cells[role.reads->at(microbatch)];
  }

  /// False when a message is not here.
  [[gnu::always_inline]] inline bool runAlone(const Operation &item) {
    current = &item;
    switch (item.opcode) {
    case Opcode::Receive:
      postReceive(item);
      return true;
    case Opcode::Send:
      send(item);
      return true;
    case Opcode::Give:
      give(item);
      return true;
    case Opcode::Take:
      take(item);
      return true;
    default:
      Call &call = calls.front();
      if (!std::exchange(isOpen, true))
        begin(call, item, 0);
      if (!inputsAreHere(call))
        return false;
      isOpen = false;
      executeHere(call);
      end(call);
      return true;
    }
  }

  /// The same of a group.
  [[gnu::noinline]] bool runGroup(const Operation &item) {
    Item group{&item, item.members};
    if (!std::exchange(isOpen, true))
      beginGroup(group);
    for (size_t i = 0; i != numCalls; ++i)
      if (!inputsAreHere(calls[i]))
        return false;
    isOpen = false;
    if constexpr (requires { endpoint.fork(numCalls); })
      if (numCalls > 1)
        tell([&] { endpoint.fork(numCalls); });
    if (numCalls > 1 && options.overlap == Overlap::Together)
      executeTogether();
    else
      for (size_t i = 0; i != numCalls; ++i)
        executeHere(calls[i]);
    if constexpr (requires { endpoint.join(numCalls); })
      if (numCalls > 1)
        tell([&] { endpoint.join(numCalls); });
    // What a group read is released when all of it has ended.
    for (size_t i = 0; i != numCalls; ++i)
      end(calls[i]);
    for (const Operation &member : group)
      if (member.opcode == Opcode::Send)
        send(member);
    if constexpr (requires { endpoint.endBatch(); })
      if (numCalls == 0)
        wait(awaitedRank, nullptr, [&] {
          endpoint.endBatch();
          return true;
        });
    return true;
  }

  /// Posts its receives, and finds what its members read.
  void beginGroup(Item group) {
    current = &group.front();
    if constexpr (requires { endpoint.beginBatch(); })
      if (!current->isWork())
        tell([&] { endpoint.beginBatch(); });
    Held<Value> *first = nullptr, *last = nullptr;
    numCalls = 0;
    for (const Operation &member : group)
      if (member.opcode == Opcode::Receive) {
        Held<Value> &held = postReceive(member);
        (last ? last->batch : first) = &held;
        last = &held;
      } else if (member.isWork()) {
        if (numCalls == calls.size())
          calls.emplace_back(program, rank, linked);
        begin(calls[numCalls], member, numCalls);
        ++numCalls;
      }
    if (first != last)
      last->batch = first;
  }

  // Messages.

  Label labelOf(const Operation &operation) const {
    Label label = roleOf(operation).label;
    label.microbatch = microbatchOf(operation);
    return label;
  }

  /// The send of a message, as in `0SEND_F3`.
  std::string text(const Label &label) const {
    if (label.isMove())
      return cell(program,
                  {static_cast<uint8_t>(label.slot - Label::firstMove),
                   label.pipe, label.from, label.microbatch, label.to, 0, 0});
    for (const Kind &kind : program.kinds)
      if (kind.kindClass == KindClass::Send && kind.defines == label.slot)
        return cell(program,
                    {static_cast<uint8_t>(&kind - program.kinds.data),
                     label.pipe, label.from, label.microbatch, label.to, 0, 0});
    return "the message";
  }

  [[gnu::always_inline]] inline Held<Value> &
  postReceive(const Operation &operation) {
    current = &operation;
    const Role &role = roleOf(operation);
    Label label = labelOf(operation);
    Held<Value> &held = cellOf(role, label.microbatch);
    held.readers = 1;
    held.source = role.partner;
    held.pending = held.received = true;
    held.label = label;
    sources[role.partner].post(held);
    wait(role.rank, &held.label, [&] {
      endpoint.postReceive(role.rank, label, stage.messageBytes(label));
      return true;
    });
    if (recorder)
      recorder->receivePosted(operation.row, label.microbatch, role.rank);
    return held;
  }

  // What declared actions move between ranks.

  void give(const Operation &operation) {
    const Role &role = roleOf(operation);
    Call &call = calls.front();
    begin(call, operation, 0);
    executeHere(call);
    Message<Value> message{labelOf(operation), std::move(call.unread)};
    wait(role.rank, nullptr, [&] {
      endpoint.send(role.rank, std::move(message));
      return true;
    });
  }

  /// Asks for it; it is taken when something else needs it.
  void take(const Operation &operation) {
    const Role &role = roleOf(operation);
    Coming &one = coming.emplace_back();
    one.operation = &operation;
    one.label = labelOf(operation);
    one.held.source = role.partner;
    one.held.pending = true;
    one.held.label = one.label;
    sources[role.partner].post(one.held);
    wait(role.rank, &one.label, [&] {
      endpoint.postReceive(role.rank, one.label, 0);
      return true;
    });
    if (recorder)
      recorder->receivePosted(operation.row, one.label.microbatch, role.rank);
  }

  /// Takes what was asked for the work of an item, or for any; false when it is
  /// not here.
  bool hasCome(const Operation *item) {
    for (auto one = coming.begin(); one != coming.end();) {
      if (item && !concerns(*one, {item, item->members})) {
        ++one;
        continue;
      }
      current = one->operation;
      if (!await(one->held))
        return false;
      Call &call = calls.front();
      call.begin(*one->operation, roleOf(*one->operation),
                 one->label.microbatch, 0, cells.get());
      call.unread = std::move(one->held.value);
      executeHere(call);
      one = coming.erase(one);
    }
    return true;
  }
  bool concerns(const Coming &one, Item item) const {
    return std::any_of(item.begin(), item.end(), [&](const Operation &member) {
      Label label = labelOf(member);
      return member.isWork() &&
             (label.microbatch == Row::noMicrobatch ||
              (label.pipe == one.label.pipe && label.from == one.label.from &&
               (label.microbatch == one.label.microbatch ||
                one.label.microbatch == Row::noMicrobatch)));
    });
  }

  /// Waits until the value is here; with its whole batch, as one call posted
  /// it.
  bool await(Held<Value> &held) {
    while (held.pending)
      if (!endFirst(sources[held.source]))
        return false;
    return !held.batch || awaitBatch(held);
  }
  bool awaitBatch(Held<Value> &held) {
    for (Held<Value> *member = held.batch; member != &held;
         member = member->batch)
      while (member->pending)
        if (!endFirst(sources[member->source]))
          return false;
    for (Held<Value> *member = &held; member;)
      member = std::exchange(member->batch, nullptr);
    return true;
  }

  /// Ends the oldest receive from a rank, or lays aside what came before it;
  /// false when nothing is here.
  [[gnu::always_inline]] inline bool endFirst(Source &source) {
    Held<Value> &held = *source.first;
    Label expected = held.label;
    if (recorder)
      recorder->awaits(source.rank);
    bool arrived =
        wasEarly(source, held) || wait(source.rank, &held.label, [&] {
          return endpoint.receive(source.rank, held, options.patience);
        });
    if (!arrived)
      return false;
    if (recorder)
      recorder->received(source.rank);
    if (held.label.isMove() != expected.isMove()) {
      source.early.push_back(std::move(held));
      held.label = expected;
      return true;
    }
    if (held.label != expected)
      fail("rank " + std::to_string(source.rank) + " sent " + text(held.label) +
           " where " + text(expected) + " is received");
    checkSize(expected, held.value);
    held.pending = false;
    source.first = held.next;
    return true;
  }

  /// Messages and what actions move have an order each; what comes before its
  /// turn waits. Takes it, if it is there.
  bool wasEarly(Source &source, Held<Value> &held) {
    for (auto early = source.early.begin(); early != source.early.end();
         ++early)
      if (early->label == held.label) {
        static_cast<Message<Value> &>(held) = std::move(*early);
        source.early.erase(early);
        return true;
      }
    return false;
  }

  void checkSize(const Label &label, Value &value) {
    if constexpr (HasBytes<Value>) {
      size_t expected = label.isMove() ? 0 : stage.messageBytes(label);
      if (expected == 0)
        return;
      size_t size = Bytes<Value>::of(value).size();
      if (size != expected)
        fail(text(label) + " has " + std::to_string(size) + " bytes where " +
             std::to_string(expected) + " are expected");
    }
  }

  [[gnu::always_inline]] inline void send(const Operation &operation) {
    current = &operation;
    const Role &role = roleOf(operation);
    Label label = labelOf(operation);
    Held<Value> &held = cellOf(role, label.microbatch);
    if constexpr (requires { requires E::untagged; })
      checkSize(label, held.value);
    int64_t start = recorder ? Recorder::now() : 0;
    wait(role.rank, nullptr, [&] {
      held.label = label;
      if (held.readers != 1) [[unlikely]] {
        sendCopy(role.rank, held);
        return true;
      }
      post(role.rank, held, std::move(held));
      return true;
    });
    if (recorder)
      recorder->sent(operation.row, label.microbatch, role.rank, start,
                     options.waits == Waits::Here);
    read(held);
  }

  /// Others are still to read the value.
  [[gnu::cold]] void sendCopy(uint32_t to, const Held<Value> &held) {
    // A copy is made later than the value: nothing is known of when.
    if constexpr (std::is_copy_constructible_v<Value>)
      endpoint.send(to, Message<Value>(held));
    else
      throw std::runtime_error("it has other readers and cannot be copied");
  }
  void post(uint32_t to, const Held<Value> &held, Message<Value> &&message) {
    if constexpr (requires { endpoint.sendMade(to, std::move(message), 0); })
      endpoint.sendMade(to, std::move(message),
                        static_cast<size_t>(&held - cells.get()));
    else
      endpoint.send(to, std::move(message));
  }

  bool waitHere(Item item) {
    for (const Operation &member : item) {
      if (member.isWork())
        continue;
      current = &member;
      const Role &role = roleOf(member);
      if (member.opcode == Opcode::Receive) {
        // A member of the group may have read it.
        if (!await(cellOf(role, microbatchOf(member))))
          return false;
        continue;
      }
      auto met = [&] { return endpoint.sendsMet(role.rank, options.patience); };
      if (!wait(role.rank, nullptr, met))
        return false;
      if (recorder)
        recorder->sendsMet(role.rank);
    }
    return true;
  }

  /// An action has read the value.
  void read(Held<Value> &held) {
    if (--held.readers != 0)
      return;
    if constexpr (requires { endpoint.recycle(std::move(held.value)); })
      if (held.received)
        endpoint.recycle(std::move(held.value));
    held.value = Value();
  }

  // Computation.

  /// Whether all that the action reads is here.
  bool inputsAreHere(const Call &call) {
    current = call.operation;
    for (Held<Value> *held : call.inputs)
      if (!await(*held))
        return false;
    return true;
  }

  /// Finds what an action reads and makes.
  [[gnu::always_inline]] inline void
  begin(Call &call, const Operation &operation, size_t lane) {
    call.begin(operation, roleOf(operation), microbatchOf(operation),
               static_cast<uint16_t>(lane), cells.get());
  }

  [[gnu::always_inline]] inline void executeHere(Call &call) {
    current = call.operation;
    if (recorder)
      call.start = Recorder::now();
    try {
      call.run(stage);
    } catch (...) {
      rethrow(std::current_exception());
    }
    if (recorder) {
      call.end = Recorder::now();
      record(call);
    }
  }

  void executeTogether() {
    if (!crew)
      crew.emplace();
    crew->run(numCalls, [&](size_t i) {
      Call &call = calls[i];
      if (recorder)
        call.start = Recorder::now();
      try {
        call.run(stage);
      } catch (...) {
        call.failure = std::current_exception();
      }
      if (recorder)
        call.end = Recorder::now();
    });
    for (size_t i = 0; i != numCalls; ++i) {
      current = calls[i].operation;
      if (calls[i].failure)
        rethrow(std::exchange(calls[i].failure, nullptr));
      if (recorder)
        record(calls[i]);
    }
  }

  void record(const Call &call) {
    recorder->computed(call.operation->row, call.work.microbatch, call.start,
                       call.end);
  }

  [[noreturn]] void rethrow(std::exception_ptr failure) const {
    try {
      std::rethrow_exception(failure);
    } catch (const Error &) {
      throw;
    } catch (const PeerFailed &failure) {
      throw errorHere<PeerError>(failure.text);
    } catch (const TimedOut &) {
      throw errorHere<Error>("has waited too long for other ranks");
    } catch (const std::exception &error) {
      std::throw_with_nested(
          errorHere<Error>(std::string("the stage threw: ") + error.what()));
    } catch (...) {
      std::throw_with_nested(errorHere<Error>("the stage threw"));
    }
  }

  /// An action has run: what it read can go.
  void end(Call &call) {
    current = call.operation;
    call.unread = Value();
    if constexpr (requires { endpoint.made(size_t(0), uint16_t(0)); })
      for (Held<Value> *held : call.outputs)
        tell([&] {
          endpoint.made(static_cast<size_t>(held - cells.get()),
                        call.work.lane);
        });
    for (Held<Value> *held : call.inputs)
      read(*held);
    // Without a backward nothing ends an activation, but nobody needs it.
    if (call.role->kind->defines & slot::WeightGrad ||
        (!program.hasBackward && !call.isDeclared()))
      stage.release(call.work);
  }

  /// Calls a wait of the transport for a rank; its errors become ours.
  /// `message` is what is waited for, null for the receive of what was sent. It
  /// must stay where it is while the rank is blocked.
  template <class Wait>
  bool wait(uint32_t other, const Label *message, Wait waitFor) {
    awaitedRank = other;
    awaited = message;
    try {
      return waitFor();
    } catch (...) {
      failToWait();
    }
  }
  [[noreturn, gnu::cold, gnu::noinline]] void failToWait() const {
    try {
      throw;
    } catch (const TimedOut &) {
      fail("has waited " + std::to_string(options.patience.count()) +
           " ms for " + awaitedText());
    } catch (const PeerFailed &failure) {
      throw errorHere<PeerError>(failure.text);
    } catch (const Error &) {
      throw;
    } catch (const std::exception &error) {
      fail(awaitedText() + ": " + error.what());
    }
  }

  /// Calls what does not wait; its errors become ours.
  template <class Function> void tell(Function function) {
    try {
      function();
    } catch (const std::exception &error) {
      fail(error.what());
    }
  }

  std::string awaitedText() const {
    return (awaited ? text(*awaited) : "the receive") + " of rank " +
           std::to_string(awaitedRank);
  }

  [[noreturn]] void fail(const std::string &text) const {
    throw errorHere<Error>(text);
  }
  template <class E2> E2 errorHere(const std::string &text) const {
    Row row = rowOf(*current);
    return E2(rank, cell(program, row), placeOf(program, row.site), text);
  }

  const Program &program;
  uint32_t rank;
  S &stage;
  E &endpoint;
  Options options;
  Linked linked;
  const RankProgram &list;
  Recorder *recorder = nullptr;

  size_t loop = 0;    ///< Of linked.loops;
  uint32_t turns = 0; ///< how often it has run,
  uint32_t shift = 0; ///< and what that adds to microbatches.
  const Operation *at = nullptr,
                  *turnEnd =
                      nullptr; ///< The next item, and where the turn ends.
  bool isOpen = false;         ///< A group has begun.
  bool ran = false;            ///< The item has, and its messages are awaited.
  const Operation *current = nullptr; ///< Errors are told of this one.

  std::unique_ptr<Held<Value>[]> cells;
  std::vector<Source> sources; ///< By the number of a partner.
  std::list<Coming> coming;    ///< In the order in which it was asked for.
  std::vector<Call> calls;     ///< The first numCalls are of the group.
  size_t numCalls = 0;
  std::optional<Crew> crew;

  const Label *awaited = nullptr; ///< Null for the receive of a send.
  uint32_t awaitedRank = 0;
};

/// A rank's part in a job, on a transport whose waits return when they have
/// ended. Programs are linked once and run as often as you like; all ranks link
/// and run the same, in the same order. The stage, the endpoint and the linked
/// program must stay where they are.
///
/// Its functions throw Error; then the other ranks have been told, and end too,
/// unless it is a Disagreement, which leaves the session without a program.
template <Stage S, Endpoint<typename S::Value> E> class Session {
public:
  Session(const Program &program, S &stage, E &endpoint,
          const Options &options = {})
      : Session(program, endpoint.rank(), stage, endpoint, options) {}
  Session(const Program &program, uint32_t rank, S &stage, E &endpoint,
          const Options &options = {}, const std::string &digest = "")
      : rank(rank), stage(stage), endpoint(endpoint), options(options) {
    link(program, digest);
  }

  /// Puts another program in the place of the last: checks it, agrees on it
  /// with the other ranks, connects. O(actions of all ranks), or of this one
  /// where the digest of the program is known.
  void link(const Program &program, const std::string &digest = "") {
    orTell([&] {
      hasRun = false;
      runner.emplace(program, rank, stage, endpoint, options);
      runner->agree(digest.empty() ? digestOf(program) : digest);
      runner->link();
      runner->connect();
    });
  }

  /// Runs the program.
  Stats step() {
    if (!runner)
      throw Error("the session has no program: the last run or link failed");
    return orTell([&] {
      if (std::exchange(hasRun, true))
        runner->rewind();
      while (runner->step() != Runner::Progress::Done)
        ;
      runner->finish();
      return runner->stats();
    });
  }

private:
  using Runner = RankRunner<S, E>;

  /// Calls what may fail.
  template <class Function> auto orTell(Function function) {
    try {
      return function();
    } catch (const Disagreement &) {
      runner.reset();
      throw;
    } catch (const PeerError &error) {
      fail(error.cause());
      throw;
    } catch (const std::exception &error) {
      fail(error.what());
      throw;
    }
  }
  void fail(const std::string &text) {
    runner.reset();
    endpoint.fail(text);
    if constexpr (requires { stage.fail(text); })
      stage.fail(text);
  }

  uint32_t rank;
  S &stage;
  E &endpoint;
  Options options;
  std::optional<Runner> runner;
  bool hasRun = false;
};

/// Runs the program of a rank once.
template <Stage S, Endpoint<typename S::Value> E>
Stats run(const Program &program, uint32_t rank, S &stage, E &endpoint,
          const Options &options = {}) {
  return Session<S, E>(program, rank, stage, endpoint, options).step();
}

} // namespace ppcc::rt
