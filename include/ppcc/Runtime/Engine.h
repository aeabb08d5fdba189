// Executes the program of a rank, whatever the stage computes and whatever
// carries the messages.
#pragma once

#include "ppcc/Runtime/Activations.h"
#include "ppcc/Runtime/Call.h"
#include "ppcc/Runtime/Check.h"
#include "ppcc/Runtime/Crew.h"
#include "ppcc/Runtime/Digest.h"
#include "ppcc/Runtime/Endpoint.h"
#include "ppcc/Runtime/Fifo.h"
#include "ppcc/Runtime/Items.h"
#include "ppcc/Runtime/Recorder.h"
#include "ppcc/Runtime/Restored.h"

#include <algorithm>
#include <chrono>
#include <exception>
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

/// What a rank did, and how much it held at one time.
struct Stats {
  uint64_t actions = 0; ///< Sends and receives included.
  uint64_t sends = 0, receives = 0;
  /// Forwards that had begun and whose backward (both parts) had not ended.
  uint32_t peakActivations = 0;
  /// Receives that were posted and not yet read.
  uint32_t peakReceives = 0;
};

/// Interprets the list of one rank, item by item: an item is an action or a
/// group. It can stop at any wait, so that one thread can run all ranks.
template <Stage S, Endpoint<typename S::Value> E> class RankRunner {
public:
  using Value = typename S::Value;
  enum class Progress { Ran, Blocked, Done };

  /// Checks the program; throws Error when it does not fit.
  RankRunner(const Program &program, uint32_t rank, S &stage, E &endpoint,
             const Options &options = {})
      : program(program), rank(rank), stage(stage), endpoint(endpoint),
        options(options), wiring(checked(program, rank, endpoint)),
        list(program.ranks[rank]), items(program, rank, wiring),
        held(wiring.numValues()), activations(program, rank, wiring) {
    checkRows(program, rank, wiring);
    restored = Restored(program, rank);
    calls.emplace_back();
    for (uint32_t partner : wiring.partners())
      sources.push_back({partner, {}});
    if (options.trace)
      beginTrace();
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
    items.rewind();
    activations.reset();
    counts = Stats();
    if (recorder)
      recorder->begin(list, options.overlap == Overlap::Together);
  }

  /// Runs the next item, or as much of it as goes without a message that is not
  /// here. Throws Error.
  Progress step() {
    if (items.atEnd())
      return Progress::Done;
    if (!loaded)
      load();
    if (!ran) {
      ran = item.size() == 1 ? runAlone(item.front()) : runGroup();
      if (!ran)
        return Progress::Blocked;
    }
    if (options.waits == Waits::Here && !waitHere())
      return Progress::Blocked;
    counts.actions += items.advance();
    loaded = false;
    return items.atEnd() ? finished() : Progress::Ran;
  }

  Stats stats() const {
    Stats all = counts;
    all.peakActivations = activations.peak();
    return all;
  }

  /// Waits until the sends have ended. Throws Error.
  void finish() {
    waitOutside("the end of its last sends",
                [&] { endpoint.finish(options.patience); });
  }

  /// For what a blocked rank waits, in words; and for whom.
  std::string waitsFor() const {
    return "rank " + std::to_string(rank) + " waits in " +
           cell(program, *current) + where() + " for " + awaitedText();
  }
  /// Throws an error at the action where the rank stands.
  [[noreturn]] void fail(const std::string &text) const {
    throw errorHere<Error>(text);
  }

private:
  using Call = rt::Call<S>;

  /// A rank that sends to this one, and the receives posted for it, in order.
  struct Source {
    struct Posted {
      Held<Value> *held;
      Label label;
    };
    uint32_t rank;
    Fifo<Posted> posted;
  };

  static Wiring checked(const Program &program, uint32_t rank, E &endpoint) {
    checkStages(program, endpoint.numRanks());
    if (rank >= program.numRanks)
      throw Error("there is no rank " + std::to_string(rank));
    return Wiring(program, rank);
  }

  void beginTrace() {
    if (options.trace->numRanks() != program.numRanks)
      throw Error(
          "the trace is for " + std::to_string(options.trace->numRanks()) +
          " ranks, the program for " + std::to_string(program.numRanks));
    recorder = &options.trace->rank(rank);
    recorder->begin(list, options.overlap == Overlap::Together);
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

  void load() {
    item = items.load();
    loaded = true;
    ran = false;
    numCalls = 0;
    if (item.size() > 1)
      beginGroup();
  }

  void beginGroup() {
    ++batches;
    if constexpr (requires { endpoint.beginBatch(); })
      if (!item.front().isWork()) {
        current = &item.front().row;
        tell([&] { endpoint.beginBatch(); });
      }
    for (const Member &member : item)
      if (member.is(KindClass::Recv))
        postReceive(member, batches);
  }

  /// False when a message is not here.
  bool runAlone(const Member &member) {
    switch (member.does->kind->kindClass) {
    case KindClass::Recv:
      postReceive(member, 0);
      break;
    case KindClass::Send:
      send(member);
      break;
    case KindClass::Compute:
      if (numCalls == 0)
        begin(member);
      if (!inputsAreHere(calls.front()))
        return false;
      executeHere(calls.front());
      keepResults(calls.front());
      break;
    case KindClass::Declared:
      begin(member);
      executeHere(calls.front());
    }
    return true;
  }

  /// The same of a group, whose receives are posted.
  bool runGroup() {
    if (numCalls == 0)
      for (const Member &member : item)
        if (member.isWork())
          begin(member);
    for (size_t i = 0; i != numCalls; ++i)
      if (!inputsAreHere(calls[i]))
        return false;
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
    // What a group makes is released when all of it has ended.
    for (size_t i = 0; i != numCalls; ++i)
      keepResults(calls[i]);
    for (const Member &member : item)
      if (member.is(KindClass::Send))
        send(member);
    if constexpr (requires { endpoint.endBatch(); })
      if (numCalls == 0)
        wait(awaitedRank, nullptr, [&] {
          endpoint.endBatch();
          return true;
        });
    return true;
  }

  Progress finished() {
    uint64_t left =
        held.size() + (program.hasBackward ? activations.size() : 0);
    if (left == 0)
      return Progress::Done;
    uint32_t microbatch = 0;
    if (!held.any(microbatch))
      activations.any(microbatch);
    throw Error(rank, "", "",
                "the program has ended, but " + std::to_string(left) +
                    " values have not been read, or have no backward; one is "
                    "of microbatch " +
                    std::to_string(microbatch));
  }

  std::string where() const {
    std::string place = placeOf(program, current->site);
    return place.empty() ? "" : " (" + place + ")";
  }
  template <class E2> E2 errorHere(const std::string &text) const {
    return E2(rank, cell(program, *current), placeOf(program, current->site),
              text);
  }

  // Messages.

  static Label labelOf(const Member &member) {
    const Row &row = member.row;
    const Kind &kind = *member.does->kind;
    bool sends = kind.kindClass == KindClass::Send;
    return {row.pipe, kind.defines, sends ? row.stage : row.peer,
            sends ? row.peer : row.stage, row.microbatch};
  }

  /// The send of a message, as in `0SEND_F3`.
  std::string text(const Label &label) const {
    for (const Kind &kind : program.kinds)
      if (kind.kindClass == KindClass::Send && kind.defines == label.slot)
        return cell(program,
                    {static_cast<uint8_t>(&kind - program.kinds.data),
                     label.pipe, label.from, label.microbatch, label.to, 0, 0});
    return "the message";
  }

  void postReceive(const Member &member, uint32_t batch) {
    current = &member.row;
    const Operation &does = *member.does;
    uint32_t microbatch = member.row.microbatch;
    if (list.receiveBuffers != 0 && numReceives == list.receiveBuffers)
      fail("posts more receives than the " +
           std::to_string(list.receiveBuffers) + " that the compiler counted");
    Held<Value> *value = held.insert(does.value, microbatch);
    if (!value)
      fail("this message is received twice");
    value->readers = 1;
    value->batch = batch;
    value->source = does.partner;
    value->pending = value->received = true;
    if (batch != 0)
      openBatches.push_back(value);
    Label label = labelOf(member);
    sources[does.partner].posted.push({value, label});
    wait(does.rank, &label, [&] {
      endpoint.postReceive(does.rank, label, stage.messageBytes(label));
      return true;
    });
    if (recorder)
      recorder->receivePosted(items.placeOf(member.row), microbatch, does.rank);
    ++counts.receives;
    counts.peakReceives = std::max(counts.peakReceives, ++numReceives);
  }

  /// Waits until the value is here; with its whole batch, as one call posted
  /// it.
  bool await(Held<Value> &value) {
    while (value.pending)
      if (!endFirst(sources[value.source]))
        return false;
    return value.batch == 0 || awaitBatch(value.batch);
  }

  bool awaitBatch(uint32_t batch) {
    for (Held<Value> *member : openBatches)
      while (member->pending && member->batch == batch)
        if (!endFirst(sources[member->source]))
          return false;
    std::erase_if(openBatches, [&](Held<Value> *member) {
      bool ended = member->batch == batch;
      if (ended)
        member->batch = 0;
      return ended;
    });
    return true;
  }

  /// Ends the oldest receive from a rank.
  bool endFirst(Source &source) {
    typename Source::Posted &first = source.posted.front();
    if (recorder)
      recorder->awaits(source.rank);
    bool arrived = wait(source.rank, &first.label, [&] {
      return endpoint.receive(source.rank, incoming, options.patience);
    });
    if (!arrived)
      return false;
    if (recorder)
      recorder->received(source.rank);
    if (incoming.label != first.label)
      fail("rank " + std::to_string(source.rank) + " sent " +
           text(incoming.label) + " where " + text(first.label) +
           " is received");
    checkSize(first.label, incoming.value);
    first.held->value = std::move(incoming.value);
    first.held->pending = false;
    source.posted.pop();
    return true;
  }

  void checkSize(const Label &label, Value &value) {
    if constexpr (HasBytes<Value>) {
      size_t expected = stage.messageBytes(label);
      if (expected == 0)
        return;
      size_t size = Bytes<Value>::of(value).size();
      if (size != expected)
        fail(text(label) + " has " + std::to_string(size) + " bytes where " +
             std::to_string(expected) + " are expected");
    }
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

  void send(const Member &member) {
    const Operation &does = *member.does;
    current = &member.row;
    Held<Value> *value = held.find(does.value, member.row.microbatch);
    if (!value)
      fail("nobody has made what this sends");
    if constexpr (requires { requires E::untagged; })
      checkSize(labelOf(member), value->value);
    int64_t start = recorder ? Recorder::now() : 0;
    wait(does.rank, nullptr, [&] {
      endpoint.send(does.rank, {labelOf(member), value->take()});
      return true;
    });
    if (recorder)
      recorder->sent(items.placeOf(member.row), member.row.microbatch,
                     does.rank, start, options.waits == Waits::Here);
    read(*value);
    ++counts.sends;
  }

  bool waitHere() {
    for (const Member &member : item) {
      const Operation &does = *member.does;
      if (member.isWork())
        continue;
      current = &member.row;
      if (member.is(KindClass::Send)) {
        auto met = [&] {
          return endpoint.sendsMet(does.rank, options.patience);
        };
        if (!wait(does.rank, nullptr, met))
          return false;
        if (recorder)
          recorder->sendsMet(does.rank);
      } else if (Held<Value> *value =
                     held.find(does.value, member.row.microbatch);
                 value && !await(*value)) {
        return false;
      }
    }
    return true;
  }

  /// An action has read the value.
  void read(Held<Value> &value) {
    if (--value.readers != 0)
      return;
    if constexpr (requires { endpoint.recycle(std::move(value.value)); })
      if (value.received)
        endpoint.recycle(std::move(value.value));
    value.value = Value();
    numReceives -= value.received;
    held.erase(value);
  }

  // Computation.

  /// Whether all that the action reads is here.
  bool inputsAreHere(const Call &call) {
    current = call.row;
    for (Held<Value> *value : call.inputs)
      if (!await(*value))
        return false;
    return true;
  }

  /// Finds what a compute action reads.
  void begin(const Member &member) {
    const Row &row = member.row;
    current = &row;
    if (numCalls == calls.size())
      calls.emplace_back();
    Call &call = calls[numCalls];
    call.row = &row;
    call.work = {&program,    rank,      row.pipe,
                 row.kind,    row.stage, row.microbatch,
                 row.phase(), row.site,  static_cast<uint16_t>(numCalls++)};
    call.does = member.does;
    call.inputs.clear();
    const Kind &kind = *member.does->kind;
    if (kind.kindClass == KindClass::Declared)
      return;
    call.work.isRestored = restored.has(row, kind.defines);
    const StageWiring &wires = *member.does->stage;
    if (kind.defines & slot::Output) {
      // Without a backward the output alone tells.
      if (!program.hasBackward && held.find(wires.output, row.microbatch))
        fail("runs twice");
      tell([&] { activations.beginForward(row, wires); });
      gather(row, wires.inputs, call.inputs, "the output");
      return;
    }
    tell([&] { activations.beginBackward(row, kind, wires); });
    if (kind.defines & slot::InputGrad)
      gather(row, wires.outputGrads, call.inputs, "the gradient");
  }

  void gather(const Row &row, const std::vector<EdgeEnd> &edges,
              std::vector<Held<Value> *> &into, const char *what) {
    for (const EdgeEnd &edge : edges) {
      Held<Value> *value = held.find(edge.value, row.microbatch);
      if (!value)
        fail(std::string("needs ") + what + " of stage " +
             std::to_string(edge.stage) + ", which is not there");
      into.push_back(value);
    }
  }

  void executeHere(Call &call) {
    current = call.row;
    if (recorder)
      call.start = Recorder::now();
    try {
      call.run(stage);
    } catch (...) {
      rethrow(std::current_exception());
    }
    if (recorder) {
      call.end = Recorder::now();
      recordCall(call);
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
      current = calls[i].row;
      if (calls[i].failure)
        rethrow(std::exchange(calls[i].failure, nullptr));
      if (recorder)
        recordCall(calls[i]);
    }
  }

  void recordCall(const Call &call) {
    recorder->computed(items.placeOf(*call.row), call.work.microbatch,
                       call.start, call.end);
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

  void keepResults(Call &call) {
    if (call.isDeclared())
      return;
    current = call.row;
    uint32_t microbatch = call.work.microbatch;
    const StageWiring &made = *call.does->stage;
    uint8_t defines = call.does->kind->defines;
    if (defines & slot::Output && !made.outputGrads.empty())
      keep(made.output, microbatch,
           static_cast<uint32_t>(made.outputGrads.size()),
           std::move(call.result));
    if (defines & slot::InputGrad)
      for (size_t i = 0; i != made.inputGrads.size(); ++i)
        keep(made.inputGrads[i].value, microbatch, 1, call.takeGrad(i));
    call.result = Value();
    call.grads.clear();
    for (Held<Value> *value : call.inputs)
      read(*value);
    // Without a backward nothing ends an activation, but nobody needs it.
    if (defines & slot::WeightGrad)
      activations.end(microbatch, made);
    if (defines & slot::WeightGrad || !program.hasBackward)
      stage.release(call.work);
  }

  void keep(uint32_t number, uint32_t microbatch, uint32_t readers,
            Value &&value) {
    Held<Value> *kept = held.insert(number, microbatch);
    if (!kept)
      fail("makes a value twice");
    kept->readers = readers;
    kept->value = std::move(value);
  }

  const Program &program;
  uint32_t rank;
  S &stage;
  E &endpoint;
  Options options;
  Wiring wiring;
  const RankProgram &list;
  Recorder *recorder = nullptr;

  Items items;
  bool loaded = false, ran = false;
  std::span<const Member> item;
  const Row *current = nullptr;

  Restored restored;
  ValueTable<Value> held;
  Activations activations;
  std::vector<Source> sources; ///< By the number of a partner.
  std::vector<Held<Value> *> openBatches;
  uint32_t batches = 0;
  Message<Value> incoming{};

  std::vector<Call> calls; ///< The first numCalls are of the item.
  size_t numCalls = 0;
  std::optional<Crew> crew;

  Stats counts;
  uint32_t numReceives = 0;
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
