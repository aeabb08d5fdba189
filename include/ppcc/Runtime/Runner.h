// Runs the linked list of one rank, item by item.
//
// Algorithm: a resumable interpreter, that is a state machine in the place of a
// coroutine. step() runs items until a message is missing. If the endpoint does
// not wait itself, step() returns Blocked, and the next call retries the item.
// So one thread can run all ranks in turn.
// Invariant: a stage computes an action only when all inputs of its item are
// there, so that a retry repeats no computation. `isOpen` and `ran` keep a
// retry from posting a receive twice.
// Cost: one access to a ring for each value that an action reads or makes, and
// one for each send or receive.
//
// Example: 1RECV_F0 1F0 with WaitPolicy::Posted. 1RECV_F0 posts a receive and
// returns at once. 1F0 finds no value: step() returns Blocked. The next step()
// begins at 1F0. With WaitPolicy::Rendezvous, step() blocks in 1RECV_F0.
#pragma once

#include "ppcc/Runtime/Call.h"
#include "ppcc/Runtime/Inbox.h"
#include "ppcc/Runtime/Interleave.h"

#include <algorithm>
#include <list>
#include <optional>

namespace ppcc::rt {

/// What one rank does; an item is an action or a group. It can stop at any
/// wait, so that one thread can run all ranks.
template <Stage S, Endpoint<typename S::Value> E> class RankRunner {
public:
  using Value = typename S::Value;
  enum class Progress { Blocked, Done };

  /// Checks the program; throws Error when it does not fit.
  RankRunner(const Program &program, uint32_t rank, S &stage, E &endpoint,
             const Options &options = {})
      : program(program), rank(rank), stage(stage), endpoint(endpoint),
        options(options), linked(checked(program, rank, endpoint), rank),
        cursor(program, rank, linked, options.timeout),
        recorder(recorderOf(options, program, rank)),
        inbox(cursor, stage, endpoint, this->options, recorder),
        singleCall(program, rank) {}
  RankRunner(const RankRunner &) = delete;

  /// Waits until all ranks have come, and compares the digests of what they are
  /// about to run. Throws ProgramMismatch, or another Error.
  void agree(const std::string &digest) {
    if constexpr (requires { endpoint.gather(digest, options.timeout); })
      cursor.waitOutsideActions("the programs of the other ranks", [&] {
        std::vector<std::string> all = endpoint.gather(digest, options.timeout);
        for (size_t other = 0; other != all.size(); ++other)
          if (all[other] != digest)
            throw disagreement(rank, digest, static_cast<uint32_t>(other),
                               all[other]);
      });
  }
  static ProgramMismatch disagreement(uint32_t rank, const std::string &digest,
                                      uint32_t other,
                                      const std::string &otherDigest) {
    return ProgramMismatch(rank, "", "",
                           concat("its program has the digest ", digest,
                                  ", that of rank ", other, " has the digest ",
                                  otherDigest,
                                  ": all ranks must run the same"));
  }

  /// Links the program, which all ranks have; throws Error when its order is
  /// wrong.
  void link() {
    linked.link(program, rank);
    if constexpr (requires { endpoint.setRendezvous(true); })
      endpoint.setRendezvous(options.waitPolicy == WaitPolicy::Rendezvous);
    cells = std::make_unique<ValueCell<Value>[]>(linked.numCells);
    for (const ActionDescriptor &descriptor : linked.wiring.descriptors())
      if (descriptor.kind->kindClass == KindClass::Recv)
        for (uint32_t i = 0; i <= descriptor.ring.mask; ++i) {
          cells[descriptor.ring.first + i].label = descriptor.label;
          cells[descriptor.ring.first + i].source = descriptor.peerIndex;
        }
    inbox.link(linked.wiring.peers());
    singleCall.link(linked);
    rewind();
  }

  /// Opens the connections to other ranks where the transport opens any: in an
  /// order of its own, or in that which the program says. Throws Error.
  void connect() {
    if constexpr (requires { endpoint.open(program, options.timeout); })
      cursor.waitOutsideActions("the connections to other ranks", [&] {
        endpoint.open(program, options.timeout);
      });
    if constexpr (requires { endpoint.connect(rank, options.timeout); })
      for (RankPair pair : program.preconnect) {
        if (pair.first != rank && pair.second != rank)
          continue;
        uint32_t other = pair.first == rank ? pair.second : pair.first;
        cursor.waitOutsideActions(
            concat("the connection to rank ", other),
            [&] { endpoint.connect(other, options.timeout); });
      }
  }

  /// Goes back to the first action, for the next run.
  void rewind() {
    cursor.rewind();
    pendingMoves.clear();
    if (recorder)
      recorder->begin(program.ranks[rank],
                      options.overlap == Overlap::Concurrent);
  }

  /// Goes on until a message that is not here, or the end. Throws Error.
  Progress step() {
    while (const Operation *item = cursor.next()) {
      if (!runItem(*item))
        return Progress::Blocked;
      cursor.advanceTo(item + item->groupSize);
    }
    return completeMoves(nullptr) ? Progress::Done : Progress::Blocked;
  }
  bool hasEnded() const { return !cursor.next() && pendingMoves.empty(); }

  /// What a run does.
  const Stats &stats() const { return linked.counts; }

  /// Waits until the sends have ended. Throws Error.
  void finish() {
    cursor.waitOutsideActions("the end of its last sends", [&] {
      try {
        endpoint.finish(options.timeout);
      } catch (const StalledAt &stuck) {
        cursor.failStalled(stuck.label);
      }
    });
  }

  /// For what a blocked rank waits, in words; and for whom.
  std::string describeWait() const { return cursor.describeWait(); }

private:
  using Call = rt::Call<S>;
  using Item = std::span<const Operation>;

  /// What another rank moves to this one.
  struct PendingMove {
    const Operation *operation = nullptr;
    ValueCell<Value> held{};
  };

  static const Program &checked(const Program &program, uint32_t rank,
                                E &endpoint) {
    checkStages(program, endpoint.numRanks());
    if (rank >= program.numRanks)
      throw Error(concat("there is no rank ", rank));
    return program;
  }
  static Recorder *recorderOf(const Options &options, const Program &program,
                              uint32_t rank) {
    if (options.trace && options.trace->numRanks() != program.numRanks)
      throw Error(concat("the trace is for ", options.trace->numRanks(),
                         " ranks, the program for ", program.numRanks));
    return options.trace ? &options.trace->rank(rank) : nullptr;
  }

  bool runSingle(const Operation &item) {
    cursor.current = &item;
    if (item.opcode == Opcode::Receive) {
      postReceive(item);
    } else if (item.opcode == Opcode::Send) {
      send(item);
    } else if (item.opcode >= Opcode::MoveOut) {
      move(item);
    } else {
      begin(singleCall, item, 0);
      if (!findInputs(singleCall))
        return false;
      execute(singleCall);
      end(singleCall);
    }
    return true;
  }

  /// False when a message is not here; then it is to be called again.
  bool runItem(const Operation &item) {
    if (!isOpen && !ran && !completeMoves(&item))
      return false;
    if (!ran && !(item.groupSize == 1 ? runSingle(item) : runGroup(item)))
      return false;
    return options.waitPolicy == WaitPolicy::Posted || waitForMessages(item);
  }
  /// The same of a group.
  bool runGroup(const Operation &item) {
    Item group{&item, item.groupSize};
    if (!std::exchange(isOpen, true))
      beginGroup(group);
    for (size_t i = 0; i != numCalls; ++i) {
      cursor.current = calls[i].operation;
      if (!findInputs(calls[i]))
        return false;
    }
    isOpen = false;
    if constexpr (requires { endpoint.fork(numCalls); })
      if (numCalls > 1)
        cursor.withErrorContext([&] { endpoint.fork(numCalls); });
    if (!runOverlapHook())
      executeMembers();
    if constexpr (requires { endpoint.join(numCalls); })
      if (numCalls > 1)
        cursor.withErrorContext([&] { endpoint.join(numCalls); });
    // What a group read is released when all of it has ended.
    for (size_t i = 0; i != numCalls; ++i) {
      cursor.current = calls[i].operation;
      end(calls[i]);
    }
    for (const Operation &member : group)
      if (member.opcode == Opcode::Send) {
        cursor.current = &member;
        send(member);
      }
    if constexpr (requires { endpoint.endBatch(); })
      if (numCalls == 0)
        try {
          endpoint.endBatch();
        } catch (...) {
          cursor.rethrowWaitError(cursor.descriptorOf(group.back()).rank,
                                  nullptr);
        }
    return true;
  }

  /// Posts its receives, and finds what its members read.
  void beginGroup(Item group) {
    cursor.current = &group.front();
    if constexpr (requires { endpoint.beginBatch(); })
      if (!group.front().runsOnStage())
        cursor.withErrorContext([&] { endpoint.beginBatch(); });
    ValueCell<Value> *first = nullptr, *last = nullptr;
    numCalls = 0;
    for (const Operation &member : group)
      if (member.opcode == Opcode::Receive) {
        cursor.current = &member;
        ValueCell<Value> &held = postReceive(member);
        (last ? last->batch : first) = &held;
        last = &held;
      } else if (member.runsOnStage()) {
        if (numCalls == calls.size())
          calls.emplace_back(program, rank).link(linked);
        begin(calls[numCalls], member, numCalls);
        ++numCalls;
      }
    if (first != last)
      last->batch = first;
  }

  // Messages.

  ValueCell<Value> &postReceive(const Operation &operation) {
    uint32_t microbatch = cursor.microbatchOf(operation);
    ValueCell<Value> &held =
        cells[cursor.descriptorOf(operation).ring.at(microbatch)];
    held.label.microbatch = microbatch;
    inbox.post(held, operation.row, stage.messageBytes(held.label));
    return held;
  }

  void send(const Operation &operation) {
    const ActionDescriptor &descriptor = cursor.descriptorOf(operation);
    Label label = cursor.labelOf(operation);
    ValueCell<Value> &held = cells[descriptor.ring.at(label.microbatch)];
    if constexpr (requires { requires E::untagged; })
      inbox.checkSize(label, held.value);
    int64_t start = recorder ? Recorder::now() : 0;
    held.label = label;
    try {
      if (held.readers != 1)
        sendCopy(descriptor.rank, held);
      else
        post(descriptor.rank, indexOf(held), std::move(held));
    } catch (...) {
      cursor.rethrowWaitError(descriptor.rank, nullptr);
    }
    if (--held.readers == 0)
      held.value = Value();
    if (recorder)
      recorder->sent(operation.row, label.microbatch, descriptor.rank, start,
                     options.waitPolicy == WaitPolicy::Rendezvous);
  }

  /// Others are still to read the value.
  void sendCopy(uint32_t to, const Message<Value> &held) {
    // A copy is made later than the value: nothing is known of when.
    if constexpr (std::is_copy_constructible_v<Value>)
      endpoint.send(to, Message<Value>(held));
    else
      throw std::runtime_error("it has other readers and cannot be copied");
  }
  void post(uint32_t to, size_t cell, Message<Value> &&message) {
    if constexpr (requires {
                    endpoint.sendProduced(to, std::move(message), cell);
                  })
      endpoint.sendProduced(to, std::move(message), cell);
    else
      endpoint.send(to, std::move(message));
  }
  size_t indexOf(const ValueCell<Value> &held) const {
    return static_cast<size_t>(&held - cells.get());
  }

  /// With WaitPolicy::Rendezvous, waits for the messages of an item that has
  /// run.
  bool waitForMessages(const Operation &item) {
    ran = true;
    for (const Operation &member : Item{&item, item.groupSize}) {
      if (member.runsOnStage())
        continue;
      cursor.current = &member;
      const ActionDescriptor &descriptor = cursor.descriptorOf(member);
      if (member.opcode == Opcode::Receive) {
        if (!inbox.waitForAll(descriptor.peerIndex))
          return false;
        continue;
      }
      try {
        if (!endpoint.sendsMatched(descriptor.rank, options.timeout))
          return cursor.blockedOn(descriptor.rank, nullptr);
      } catch (...) {
        cursor.rethrowWaitError(descriptor.rank, nullptr);
      }
      if (recorder)
        recorder->sendsMatched(descriptor.rank);
    }
    ran = false;
    return true;
  }

  // What declared actions move between ranks.

  /// Sends it, or asks for it; then it is taken when something else needs it.
  void move(const Operation &operation) {
    if (operation.opcode == Opcode::MoveIn)
      return postMove(operation);
    begin(singleCall, operation, 0);
    execute(singleCall);
    uint32_t to = cursor.descriptorOf(operation).rank;
    try {
      endpoint.send(to, Message<Value>{cursor.labelOf(operation),
                                       std::move(singleCall.unroutedValue)});
    } catch (...) {
      cursor.rethrowWaitError(to, nullptr);
    }
  }
  void postMove(const Operation &operation) {
    ValueCell<Value> &held =
        pendingMoves.emplace_back(PendingMove{&operation, {}}).held;
    held.source = cursor.descriptorOf(operation).peerIndex;
    held.label = cursor.labelOf(operation);
    size_t bytes = 0;
    if constexpr (requires { requires E::untagged; })
      bytes = stage.moveBytes(held.label);
    inbox.post(held, operation.row, bytes);
  }

  /// Takes what was asked for the work of an item, or for any; false when it is
  /// not here.
  bool completeMoves(const Operation *item) {
    for (auto one = pendingMoves.begin(); one != pendingMoves.end();) {
      if (item && !isNeededBy(*one, {item, item->groupSize})) {
        ++one;
        continue;
      }
      cursor.current = one->operation;
      if (!inbox.waitFor(one->held))
        return false;
      singleCall.begin(*one->operation, cursor.descriptorOf(*one->operation),
                       one->held.label.microbatch, 0);
      singleCall.unroutedValue = std::move(one->held.value);
      execute(singleCall);
      singleCall.unroutedValue = Value();
      one = pendingMoves.erase(one);
    }
    return true;
  }
  bool isNeededBy(const PendingMove &one, Item item) const {
    const Label &moved = one.held.label;
    return std::any_of(item.begin(), item.end(), [&](const Operation &member) {
      Label label = cursor.labelOf(member);
      return member.runsOnStage() &&
             (label.microbatch == Row::noMicrobatch ||
              (label.pipe == moved.pipe && label.from == moved.from &&
               (label.microbatch == moved.microbatch ||
                moved.microbatch == Row::noMicrobatch)));
    });
  }

  // Computation.

  void begin(Call &call, const Operation &operation, size_t lane) {
    call.begin(operation, cursor.descriptorOf(operation),
               cursor.microbatchOf(operation), static_cast<uint16_t>(lane));
  }
  /// Finds what an action reads and makes; false when not all is here.
  bool findInputs(Call &call) {
    return call.find(cells.get(), [&](ValueCell<Value> &held) {
      return inbox.waitFor(held);
    });
  }

  void execute(Call &call) {
    cursor.current = call.operation;
    try {
      runTimed(call);
    } catch (...) {
      cursor.current = call.operation; // Another half may have run since.
      cursor.rethrow(std::current_exception());
    }
    record(call);
  }

  void executeMembers() {
    if (numCalls > 1 && options.overlap == Overlap::Concurrent)
      return executeConcurrently();
    for (size_t i = 0; i != numCalls; ++i)
      execute(calls[i]);
  }
  /// Of a forward and a backward, what the stage does with both; false when it
  /// leaves them to the engine.
  bool runOverlapHook() {
    if constexpr (requires(Half half, const ActionContext &work) {
                    {
                      stage.overlap(work, work, half, half)
                    } -> std::same_as<bool>;
                  }) {
      Call *forward = nullptr, *backward = nullptr;
      for (size_t i = 0; i != numCalls; ++i) {
        Opcode opcode = calls[i].operation->opcode;
        if (opcode == Opcode::Forward && std::exchange(forward, &calls[i]))
          return false;
        if (opcode > Opcode::Forward && opcode < Opcode::Declared && !backward)
          backward = &calls[i];
      }
      if (!forward || !backward)
        return false;
      size_t ran = 0;
      auto half = [&](bool isForward) {
        return [&, isForward] {
          for (size_t i = 0; i != numCalls; ++i)
            if ((&calls[i] == forward) == isForward) {
              execute(calls[i]);
              ++ran;
            }
        };
      };
      bool takes =
          stage.overlap(forward->work, backward->work, half(true), half(false));
      if (takes && ran != numCalls)
        cursor.rethrow(std::make_exception_ptr(std::runtime_error(
            "its function `overlap` has not run each half once")));
      return takes;
    }
    return false;
  }
  void executeConcurrently() {
    if (!threadPool)
      threadPool.emplace();
    threadPool->run(numCalls, [&](size_t i) {
      Call &call = calls[i];
      try {
        runTimed(call);
      } catch (...) {
        call.failure = std::current_exception();
      }
    });
    for (size_t i = 0; i != numCalls; ++i) {
      cursor.current = calls[i].operation;
      if (calls[i].failure)
        cursor.rethrow(std::exchange(calls[i].failure, nullptr));
      record(calls[i]);
    }
  }

  void runTimed(Call &call) {
    if (recorder)
      call.started = Recorder::now();
    call.run(stage);
    if (recorder)
      call.ended = Recorder::now();
  }
  void record(const Call &call) {
    if (recorder)
      recorder->computed(call.operation->row, call.work.microbatch,
                         call.started, call.ended);
  }

  /// An action has run: what it read can go.
  void end(Call &call) {
    if (call.outputs == call.end)
      call.unroutedValue = Value();
    if constexpr (requires { endpoint.recordProduced(size_t(0), uint16_t(0)); })
      for (ValueCell<Value> **held = call.outputs; held != call.end; ++held)
        cursor.withErrorContext(
            [&] { endpoint.recordProduced(indexOf(**held), call.work.lane); });
    for (ValueCell<Value> **held = call.reads(); held != call.outputs; ++held)
      read(**held);
    if (call.operation->isLastUse)
      stage.release(call.work);
  }

  /// An action has read the value.
  void read(ValueCell<Value> &held) {
    if (--held.readers != 0)
      return;
    if constexpr (requires { endpoint.recycle(std::move(held.value)); })
      if (held.source != held.none)
        endpoint.recycle(std::move(held.value));
    held.value = Value();
  }

  const Program &program;
  uint32_t rank;
  S &stage;
  E &endpoint;
  Options options;
  Linked linked;
  ProgramCursor cursor;
  Recorder *recorder;
  Inbox<S, E> inbox;

  bool isOpen = false; ///< A group has begun.
  bool ran = false;    ///< The item has, and its messages are awaited.

  std::unique_ptr<ValueCell<Value>[]> cells;
  std::list<PendingMove>
      pendingMoves;        ///< In the order in which it was asked for.
  Call singleCall;         ///< Of an action in no group.
  std::vector<Call> calls; ///< The first numCalls are of the group.
  size_t numCalls = 0;
  std::optional<ThreadPool> threadPool;
};

} // namespace ppcc::rt
