// Runs the linked list of one rank, item by item.
#pragma once

#include "ppcc/Runtime/Call.h"
#include "ppcc/Runtime/Crew.h"
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
        position(program, rank, linked, options.patience),
        recorder(recorderOf(options, program, rank)),
        inbox(position, stage, endpoint, this->options), lone(program, rank) {}
  RankRunner(const RankRunner &) = delete;

  /// Waits until all ranks have come, and compares the digests of what they are
  /// about to run. Throws Disagreement, or another Error.
  void agree(const std::string &digest) {
    if constexpr (requires { endpoint.gather(digest, options.patience); })
      position.waitOutside("the programs of the other ranks", [&] {
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
                        concat("its program has the digest ", digest,
                               ", that of rank ", other, " has the digest ",
                               otherDigest, ": all ranks must run the same"));
  }

  /// Links the program, which all ranks have; throws Error when its order is
  /// wrong.
  void link() {
    linked.link(program, rank);
    if constexpr (requires { endpoint.willMeet(true); })
      endpoint.willMeet(options.waits == Waits::Here);
    cells = std::make_unique<Held<Value>[]>(linked.numCells);
    for (const Role &role : linked.wiring.roles())
      if (role.kind->kindClass == KindClass::Recv)
        for (uint32_t i = 0; i <= role.ring.mask; ++i) {
          cells[role.ring.first + i].label = role.label;
          cells[role.ring.first + i].source = role.partner;
        }
    inbox.link(linked.wiring.partners());
    lone.link(linked);
    rewind();
  }

  /// Opens the connections to other ranks where the transport opens any: in an
  /// order of its own, or in that which the program says. Throws Error.
  void connect() {
    if constexpr (requires { endpoint.open(program, options.patience); })
      position.waitOutside("the connections to other ranks",
                           [&] { endpoint.open(program, options.patience); });
    if constexpr (requires { endpoint.connect(rank, options.patience); })
      for (RankPair pair : program.preconnect) {
        if (pair.first != rank && pair.second != rank)
          continue;
        uint32_t other = pair.first == rank ? pair.second : pair.first;
        position.waitOutside(concat("the connection to rank ", other), [&] {
          endpoint.connect(other, options.patience);
        });
      }
  }

  /// Goes back to the first action, for the next run.
  void rewind() {
    position.rewind();
    coming.clear();
    plain = isPlain();
    if (recorder)
      recorder->begin(program.ranks[rank],
                      options.overlap == Overlap::Together);
  }

  /// Goes on until a message that is not here, or the end. Throws Error.
  Progress step() {
    while (const Operation *item = position.next()) {
      if (item->members <= plain) [[likely]] {
        if (!runAlone(*item, nullptr))
          return Progress::Blocked;
        position.pass(item + 1);
      } else {
        if (!runItem(*item))
          return Progress::Blocked;
        position.pass(item + item->members);
      }
    }
    return hasCome(nullptr) ? Progress::Done : Progress::Blocked;
  }
  bool hasEnded() const { return !position.next() && coming.empty(); }

  /// What a run does.
  const Stats &stats() const { return linked.counts; }

  /// Waits until the sends have ended. Throws Error.
  void finish() {
    position.waitOutside("the end of its last sends", [&] {
      try {
        endpoint.finish(options.patience);
      } catch (const StuckAt &stuck) {
        position.failStuck(stuck.label);
      }
    });
  }

  /// For what a blocked rank waits, in words; and for whom.
  std::string waitsFor() const { return position.waitsFor(); }

private:
  using Call = rt::Call<S>;
  using Item = std::span<const Operation>;

  /// What another rank moves to this one.
  struct Coming {
    const Operation *operation = nullptr;
    Held<Value> held{};
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

  /// Whether nothing but what it reads holds up an action, and nobody records.
  bool isPlain() const {
    return options.waits == Waits::Late && coming.empty() && !recorder;
  }

  /// False when a message is not here; then it is to be called again.
  [[gnu::always_inline]] inline bool runAlone(const Operation &item,
                                              Recorder *recorder) {
    position.current = &item;
    if (item.opcode == Opcode::Receive) {
      postReceive(item, recorder);
    } else if (item.opcode == Opcode::Send) {
      send(item, recorder);
    } else if (item.opcode >= Opcode::Give) {
      move(item);
    } else {
      begin(lone, item, 0);
      if (!findInputs(lone, recorder))
        return false;
      execute(lone, recorder);
      end(lone);
    }
    return true;
  }

  /// The same of any item; of one that waits for more than what it reads.
  [[gnu::noinline]] bool runItem(const Operation &item) {
    if (!isOpen && !ran && !hasCome(&item))
      return false;
    if (!ran &&
        !(item.members == 1 ? runAlone(item, recorder) : runGroup(item)))
      return false;
    return options.waits == Waits::Late || waitHere(item);
  }
  /// The same of a group.
  [[gnu::noinline]] bool runGroup(const Operation &item) {
    Item group{&item, item.members};
    if (!std::exchange(isOpen, true))
      beginGroup(group);
    for (size_t i = 0; i != numCalls; ++i) {
      position.current = calls[i].operation;
      if (!findInputs(calls[i], recorder))
        return false;
    }
    isOpen = false;
    if constexpr (requires { endpoint.fork(numCalls); })
      if (numCalls > 1)
        position.tell([&] { endpoint.fork(numCalls); });
    if (!executeHalves())
      executeMembers();
    if constexpr (requires { endpoint.join(numCalls); })
      if (numCalls > 1)
        position.tell([&] { endpoint.join(numCalls); });
    // What a group read is released when all of it has ended.
    for (size_t i = 0; i != numCalls; ++i) {
      position.current = calls[i].operation;
      end(calls[i]);
    }
    for (const Operation &member : group)
      if (member.opcode == Opcode::Send) {
        position.current = &member;
        send(member, recorder);
      }
    if constexpr (requires { endpoint.endBatch(); })
      if (numCalls == 0)
        try {
          endpoint.endBatch();
        } catch (...) {
          position.failToWait(position.roleOf(group.back()).rank, nullptr);
        }
    return true;
  }

  /// Posts its receives, and finds what its members read.
  void beginGroup(Item group) {
    position.current = &group.front();
    if constexpr (requires { endpoint.beginBatch(); })
      if (!group.front().isWork())
        position.tell([&] { endpoint.beginBatch(); });
    Held<Value> *first = nullptr, *last = nullptr;
    numCalls = 0;
    for (const Operation &member : group)
      if (member.opcode == Opcode::Receive) {
        position.current = &member;
        Held<Value> &held = postReceive(member, recorder);
        (last ? last->batch : first) = &held;
        last = &held;
      } else if (member.isWork()) {
        if (numCalls == calls.size())
          calls.emplace_back(program, rank).link(linked);
        begin(calls[numCalls], member, numCalls);
        ++numCalls;
      }
    if (first != last)
      last->batch = first;
  }

  // Messages.

  [[gnu::always_inline]] inline Held<Value> &
  postReceive(const Operation &operation, Recorder *recorder) {
    uint32_t microbatch = position.microbatchOf(operation);
    Held<Value> &held = cells[position.roleOf(operation).ring.at(microbatch)];
    held.label.microbatch = microbatch;
    inbox.post(held, operation.row, stage.messageBytes(held.label), recorder);
    return held;
  }

  [[gnu::always_inline]] inline void send(const Operation &operation,
                                          Recorder *recorder) {
    const Role &role = position.roleOf(operation);
    Label label = position.labelOf(operation);
    Held<Value> &held = cells[role.ring.at(label.microbatch)];
    if constexpr (requires { requires E::untagged; })
      inbox.checkSize(label, held.value);
    int64_t start = recorder ? Recorder::now() : 0;
    held.label = label;
    try {
      if (held.readers != 1) [[unlikely]]
        sendCopy(role.rank, held);
      else
        post(role.rank, indexOf(held), std::move(held));
    } catch (...) {
      position.failToWait(role.rank, nullptr);
    }
    if (--held.readers == 0)
      clear(held.value);
    if (recorder)
      recorder->sent(operation.row, label.microbatch, role.rank, start,
                     options.waits == Waits::Here);
  }

  /// Others are still to read the value.
  [[gnu::cold, gnu::noinline]] void sendCopy(uint32_t to,
                                             const Message<Value> &held) {
    // A copy is made later than the value: nothing is known of when.
    if constexpr (std::is_copy_constructible_v<Value>)
      endpoint.send(to, Message<Value>(held));
    else
      throw std::runtime_error("it has other readers and cannot be copied");
  }
  void post(uint32_t to, size_t cell, Message<Value> &&message) {
    if constexpr (requires { endpoint.sendMade(to, std::move(message), cell); })
      endpoint.sendMade(to, std::move(message), cell);
    else
      endpoint.send(to, std::move(message));
  }
  size_t indexOf(const Held<Value> &held) const {
    return static_cast<size_t>(&held - cells.get());
  }

  /// With Waits::Here, waits for the messages of an item that has run.
  bool waitHere(const Operation &item) {
    ran = true;
    for (const Operation &member : Item{&item, item.members}) {
      if (member.isWork())
        continue;
      position.current = &member;
      const Role &role = position.roleOf(member);
      if (member.opcode == Opcode::Receive) {
        if (!inbox.awaitAll(role.partner, recorder))
          return false;
        continue;
      }
      try {
        if (!endpoint.sendsMet(role.rank, options.patience))
          return position.blockOn(role.rank, nullptr);
      } catch (...) {
        position.failToWait(role.rank, nullptr);
      }
      if (recorder)
        recorder->sendsMet(role.rank);
    }
    ran = false;
    return true;
  }

  // What declared actions move between ranks.

  /// Sends it, or asks for it; then it is taken when something else needs it.
  [[gnu::noinline]] void move(const Operation &operation) {
    if (operation.opcode == Opcode::Take)
      return ask(operation);
    begin(lone, operation, 0);
    executeApart(lone);
    uint32_t to = position.roleOf(operation).rank;
    try {
      endpoint.send(to, Message<Value>{position.labelOf(operation),
                                       std::move(lone.unread)});
    } catch (...) {
      position.failToWait(to, nullptr);
    }
  }
  void ask(const Operation &operation) {
    Held<Value> &held = coming.emplace_back(Coming{&operation, {}}).held;
    held.source = position.roleOf(operation).partner;
    held.label = position.labelOf(operation);
    plain = 0;
    size_t bytes = 0;
    if constexpr (requires { requires E::untagged; })
      bytes = stage.moveBytes(held.label);
    inbox.post(held, operation.row, bytes, recorder);
  }

  /// Takes what was asked for the work of an item, or for any; false when it is
  /// not here.
  bool hasCome(const Operation *item) {
    for (auto one = coming.begin(); one != coming.end();) {
      if (item && !concerns(*one, {item, item->members})) {
        ++one;
        continue;
      }
      position.current = one->operation;
      if (!inbox.await(one->held, recorder))
        return false;
      lone.begin(*one->operation, position.roleOf(*one->operation),
                 one->held.label.microbatch, 0);
      lone.unread = std::move(one->held.value);
      executeApart(lone);
      clear(lone.unread);
      one = coming.erase(one);
    }
    plain = isPlain();
    return true;
  }
  bool concerns(const Coming &one, Item item) const {
    const Label &moved = one.held.label;
    return std::any_of(item.begin(), item.end(), [&](const Operation &member) {
      Label label = position.labelOf(member);
      return member.isWork() &&
             (label.microbatch == Row::noMicrobatch ||
              (label.pipe == moved.pipe && label.from == moved.from &&
               (label.microbatch == moved.microbatch ||
                moved.microbatch == Row::noMicrobatch)));
    });
  }

  // Computation.

  [[gnu::always_inline]] inline void
  begin(Call &call, const Operation &operation, size_t lane) {
    call.begin(operation, position.roleOf(operation),
               position.microbatchOf(operation), static_cast<uint16_t>(lane));
  }
  /// Finds what an action reads and makes; false when not all is here.
  [[gnu::always_inline]] inline bool findInputs(Call &call,
                                                Recorder *recorder) {
    return call.find(cells.get(),
                     [&](Held<Value> &held) __attribute__((always_inline)) {
                       return inbox.await(held, recorder);
                     });
  }

  [[gnu::always_inline]] inline void execute(Call &call, Recorder *recorder) {
    try {
      runTimed(call, recorder);
    } catch (...) {
      position.current = call.operation; // Another half may have run since.
      position.rethrow(std::current_exception());
    }
    record(call, recorder);
  }

  [[gnu::noinline]] void executeApart(Call &call) {
    position.current = call.operation;
    execute(call, recorder);
  }
  void executeMembers() {
    if (numCalls > 1 && options.overlap == Overlap::Together)
      return executeTogether();
    for (size_t i = 0; i != numCalls; ++i)
      executeApart(calls[i]);
  }
  /// Of a forward and a backward, what the stage does with both; false when it
  /// leaves them to the engine.
  bool executeHalves() {
    if constexpr (requires(Half half, const Work &work) {
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
              executeApart(calls[i]);
              ++ran;
            }
        };
      };
      bool takes =
          stage.overlap(forward->work, backward->work, half(true), half(false));
      if (takes && ran != numCalls)
        position.rethrow(std::make_exception_ptr(std::runtime_error(
            "its function `overlap` has not run each half once")));
      return takes;
    }
    return false;
  }
  void executeTogether() {
    if (!crew)
      crew.emplace();
    crew->run(numCalls, [&](size_t i) {
      Call &call = calls[i];
      try {
        runTimed(call, recorder);
      } catch (...) {
        call.failure = std::current_exception();
      }
    });
    for (size_t i = 0; i != numCalls; ++i) {
      position.current = calls[i].operation;
      if (calls[i].failure)
        position.rethrow(std::exchange(calls[i].failure, nullptr));
      record(calls[i], recorder);
    }
  }

  [[gnu::always_inline]] inline void runTimed(Call &call, Recorder *recorder) {
    if (recorder)
      call.started = Recorder::now();
    call.run(stage);
    if (recorder)
      call.ended = Recorder::now();
  }
  static void record(const Call &call, Recorder *recorder) {
    if (recorder)
      recorder->computed(call.operation->row, call.work.microbatch,
                         call.started, call.ended);
  }

  /// An action has run: what it read can go.
  [[gnu::always_inline]] inline void end(Call &call) {
    if (call.makes == call.end)
      clear(call.unread);
    if constexpr (requires { endpoint.made(size_t(0), uint16_t(0)); })
      for (Held<Value> **held = call.makes; held != call.end; ++held)
        position.tell([&] { endpoint.made(indexOf(**held), call.work.lane); });
    for (Held<Value> **held = call.reads(); held != call.makes; ++held)
      read(**held);
    if (call.operation->ends)
      stage.release(call.work);
  }

  /// An action has read the value.
  [[gnu::always_inline]] inline void read(Held<Value> &held) {
    if (--held.readers != 0)
      return;
    if constexpr (requires { endpoint.recycle(std::move(held.value)); })
      if (held.source != held.none)
        endpoint.recycle(std::move(held.value));
    clear(held.value);
  }

  const Program &program;
  uint32_t rank;
  S &stage;
  E &endpoint;
  Options options;
  Linked linked;
  Position position;
  Recorder *recorder;
  Inbox<S, E> inbox;

  bool isOpen = false; ///< A group has begun.
  bool ran = false;    ///< The item has, and its messages are awaited.
  uint16_t plain = 0;  ///< Items with more members wait for more than messages.

  std::unique_ptr<Held<Value>[]> cells;
  std::list<Coming> coming; ///< In the order in which it was asked for.
  Call lone;                ///< Of an action in no group.
  std::vector<Call> calls;  ///< The first numCalls are of the group.
  size_t numCalls = 0;
  std::optional<Crew> crew;
};

} // namespace ppcc::rt
