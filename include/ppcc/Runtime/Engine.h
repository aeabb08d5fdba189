// Executes the program of a rank, whatever the stage computes and whatever
// carries the messages.
#pragma once

#include "ppcc/Runtime/Check.h"
#include "ppcc/Runtime/Crew.h"
#include "ppcc/Runtime/Fifo.h"
#include "ppcc/Runtime/Stage.h"

#include <algorithm>
#include <chrono>
#include <concepts>
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

/// One rank's end of a transport. Messages between two ranks arrive in the
/// order in which they are sent, in each direction by itself. A function
/// `recycle(Value &&)`, where there is one, gets the received values that have
/// been read, for their memory.
template <class T, class Value>
concept Endpoint =
    requires(T t, uint32_t rank, Message<Value> message, const Label &label,
             size_t bytes, std::chrono::milliseconds patience,
             const std::string &text) {
      { t.numRanks() } -> std::convertible_to<uint32_t>;
      /// Posts a send, which may end at any later time.
      t.send(rank, std::move(message));
      /// Posts the next receive from a rank; `bytes` is 0 when unknown.
      t.postReceive(rank, label, bytes);
      /// Ends the oldest posted receive from a rank. False: it is not here yet,
      /// come back later; only where all ranks share a thread. Throws TimedOut
      /// or PeerFailed; another exception says what is wrong with the message.
      { t.receive(rank, message, patience) } -> std::same_as<bool>;
      /// Waits until all sends to a rank met their receives, as above.
      { t.sendsMet(rank, patience) } -> std::same_as<bool>;
      /// Waits until all sends have ended; the rank has nothing more to do.
      t.finish(patience);
      /// Tells the other ranks that this one has failed.
      t.fail(text);
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
        list(program.ranks[rank]) {
    checkRows(program, rank, wiring);
    enterSegment();
  }

  /// Runs the next item, or as much of it as goes without a message that is not
  /// here. Throws Error.
  Progress step() {
    if (segment == list.segments.size)
      return Progress::Done;
    if (!loaded)
      load();
    if (!ran) {
      if (!prepare())
        return Progress::Blocked;
      compute();
      send();
      ran = true;
    }
    if (options.waits == Waits::Here && !waitHere())
      return Progress::Blocked;
    advance();
    return segment == list.segments.size ? finished() : Progress::Ran;
  }

  const Stats &stats() const { return counts; }

  /// Waits until the sends have ended. Throws Error.
  void finish() {
    try {
      endpoint.finish(options.patience);
    } catch (const TimedOut &) {
      throw Error(rank, "", "",
                  "its last sends have not ended after " +
                      std::to_string(options.patience.count()) + " ms");
    } catch (const PeerFailed &failure) {
      throw PeerError(rank, "", "", failure.text);
    }
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
  /// A rank that sends to this one, and the receives posted for it, in order.
  struct Source {
    struct Posted {
      Held<Value> *held;
      Label label;
    };
    uint32_t rank;
    Fifo<Posted> posted;
  };

  /// A compute action under way.
  struct Call {
    Work work;
    const Kind *kind;
    const StageWiring *wiring;
    std::vector<Held<Value> *> inputs;
    Value output{};
    std::vector<Value> grads; ///< One, or one for each input.
    std::exception_ptr failure;
  };

  static Wiring checked(const Program &program, uint32_t rank, E &endpoint) {
    checkStages(program, endpoint.numRanks());
    if (rank >= program.numRanks)
      throw Error("there is no rank " + std::to_string(rank));
    return Wiring(program, rank);
  }

  // Where the run stands.

  void enterSegment() {
    times = 0;
    if (segment != list.segments.size)
      at = list.segments[segment].firstRow;
  }

  void load() {
    const Segment &loop = list.segments[segment];
    uint64_t end = loop.firstRow + loop.rows;
    rows.clear();
    next = at;
    do {
      Row row = list.row(next++);
      row.microbatch += times * static_cast<uint32_t>(loop.advance);
      rows.push_back(row);
    } while (next != end && list.row(next).joined());
    loaded = true;
    ran = false;
    postReceives();
    numCalls = 0;
  }

  void advance() {
    const Segment &loop = list.segments[segment];
    counts.actions += rows.size();
    loaded = false;
    at = next;
    if (at != loop.firstRow + loop.rows)
      return;
    at = loop.firstRow;
    if (++times == loop.count) {
      ++segment;
      enterSegment();
    }
  }

  Progress finished() {
    if (held.size() != 0)
      throw Error(rank, "", "",
                  "the program has ended, but " + std::to_string(held.size()) +
                      " values have not been read, or have no backward; one is "
                      "of microbatch " +
                      std::to_string(uint32_t(held.any()->key)));
    return Progress::Done;
  }

  std::string where() const {
    std::string place = placeOf(program, current->site);
    return place.empty() ? "" : " (" + place + ")";
  }
  template <class E2> E2 errorHere(const std::string &text) const {
    return E2(rank, cell(program, *current), placeOf(program, current->site),
              text);
  }

  const Kind &kindOf(const Row &row) const { return program.kinds[row.kind]; }
  const StageWiring &wiringOf(const Row &row) const {
    return *wiring.find(row.pipe, row.stage);
  }
  static uint64_t key(uint32_t value, const Row &row) {
    return ValueTable<Value>::keyOf(value, row.microbatch);
  }

  // Messages.

  Label labelOf(const Row &row) const {
    const Kind &kind = kindOf(row);
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

  size_t sourceOf(uint32_t other) {
    size_t i = 0;
    while (i != sources.size() && sources[i].rank != other)
      ++i;
    if (i == sources.size())
      sources.push_back({other, {}});
    return i;
  }

  void postReceives() {
    uint32_t batch = rows.size() == 1 ? 0 : ++batches;
    for (const Row &row : rows) {
      if (kindOf(row).kindClass != KindClass::Recv)
        continue;
      current = &row;
      const EdgeEnd &edge = *wiringOf(row).ofMessage(kindOf(row), row.peer);
      if (held.find(key(edge.value, row)))
        fail("this message is received twice");
      if (list.receiveBuffers != 0 && numReceives == list.receiveBuffers)
        fail("posts more receives than the " +
             std::to_string(list.receiveBuffers) +
             " that the compiler counted");
      Held<Value> &value = held.insert(key(edge.value, row));
      value.readers = 1;
      value.batch = batch;
      value.source = sourceOf(edge.rank);
      value.pending = value.received = true;
      if (batch != 0)
        openBatches.push_back(&value);
      Label label = labelOf(row);
      sources[value.source].posted.push({&value, label});
      auto post = [&] {
        endpoint.postReceive(edge.rank, label, stage.messageBytes(label));
        return true;
      };
      wait(edge.rank, &label, post);
      ++counts.receives;
      counts.peakReceives = std::max(counts.peakReceives, ++numReceives);
    }
  }

  /// Waits until the value is here; with its whole batch, as one call posted
  /// it.
  bool await(Held<Value> &value) {
    while (value.pending)
      if (!endFirst(sources[value.source]))
        return false;
    if (value.batch == 0)
      return true;
    for (Held<Value> *member : openBatches)
      while (member->pending && member->batch == value.batch)
        if (!endFirst(sources[member->source]))
          return false;
    std::erase_if(openBatches, [&](Held<Value> *member) {
      return member->batch == value.batch;
    });
    value.batch = 0;
    return true;
  }

  /// Ends the oldest receive from a rank.
  bool endFirst(Source &source) {
    typename Source::Posted &first = source.posted.front();
    auto receive = [&] {
      return endpoint.receive(source.rank, incoming, options.patience);
    };
    if (!wait(source.rank, &first.label, receive))
      return false;
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
      size_t size = Bytes<Value>::of(value).size();
      if (expected != 0 && size != expected)
        fail(text(label) + " has " + std::to_string(size) + " bytes where " +
             std::to_string(expected) + " are expected");
    }
  }

  /// Calls a wait of the transport for a rank; its errors become ours.
  /// `message` is what is waited for, null for the receive of what was sent.
  template <class Wait>
  bool wait(uint32_t other, const Label *message, Wait waitFor) {
    awaitedRank = other;
    awaited = message ? std::optional(*message) : std::nullopt;
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

  std::string awaitedText() const {
    return (awaited ? text(*awaited) : "the receive") + " of rank " +
           std::to_string(awaitedRank);
  }

  void send() {
    for (const Row &row : rows) {
      if (kindOf(row).kindClass != KindClass::Send)
        continue;
      current = &row;
      const StageWiring &made = wiringOf(row);
      const EdgeEnd &edge = *made.ofMessage(kindOf(row), row.peer);
      bool isOutput = kindOf(row).defines == slot::Output;
      Held<Value> *value =
          held.find(key(isOutput ? made.output : edge.value, row));
      if (!value)
        fail("nobody has made what this sends");
      inputs.assign(1, value);
      auto post = [&] {
        endpoint.send(edge.rank, {labelOf(row), Inputs<Value>(inputs).take(0)});
        return true;
      };
      wait(edge.rank, nullptr, post);
      read(*value);
      ++counts.sends;
    }
  }

  bool waitHere() {
    for (const Row &row : rows) {
      const Kind &kind = kindOf(row);
      if (kind.kindClass == KindClass::Compute)
        continue;
      current = &row;
      const EdgeEnd &edge = *wiringOf(row).ofMessage(kind, row.peer);
      if (kind.kindClass == KindClass::Send) {
        auto met = [&] {
          return endpoint.sendsMet(edge.rank, options.patience);
        };
        if (!wait(edge.rank, nullptr, met))
          return false;
      } else if (Held<Value> *value = held.find(key(edge.value, row));
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

  /// Finds all that the compute actions of the item read; false while some of
  /// it is not here.
  bool prepare() {
    if (numCalls == 0)
      for (const Row &row : rows)
        if (kindOf(row).kindClass == KindClass::Compute)
          begin(row);
    for (size_t i = 0; i != numCalls; ++i)
      for (Held<Value> *value : calls[i].inputs) {
        current = rowOf[i];
        if (!await(*value))
          return false;
      }
    return true;
  }

  void begin(const Row &row) {
    current = &row;
    if (numCalls == calls.size()) {
      calls.emplace_back();
      rowOf.emplace_back();
    }
    rowOf[numCalls] = &row;
    Call &call = calls[numCalls++];
    call.work = {&program,  rank,           row.pipe,    row.kind,
                 row.stage, row.microbatch, row.phase(), row.site};
    call.kind = &kindOf(row);
    call.wiring = &wiringOf(row);
    call.inputs.clear();
    call.grads.clear();
    markWork(row, call);
    if (call.kind->defines & slot::Output)
      gather(row, call.wiring->inputs, call.inputs, "the output");
    else if (call.kind->defines & slot::InputGrad)
      gather(row, call.wiring->outputGrads, call.inputs, "the gradient");
  }

  void gather(const Row &row, const std::vector<EdgeEnd> &edges,
              std::vector<Held<Value> *> &into, const char *what) {
    for (const EdgeEnd &edge : edges) {
      Held<Value> *value = held.find(key(edge.value, row));
      if (!value)
        fail(std::string("needs ") + what + " of stage " +
             std::to_string(edge.stage) + ", which is not there");
      into.push_back(value);
    }
  }

  /// Notes what is done with a microbatch, so that nothing runs twice or
  /// without what it needs.
  void markWork(const Row &row, const Call &call) {
    uint64_t activation = key(call.wiring->activation, row);
    Held<Value> *state = held.find(activation);
    if (call.kind->defines & slot::Output) {
      if (state || held.find(key(call.wiring->output, row)))
        fail("runs twice");
      if (program.hasBackward)
        held.insert(activation).slots = slot::Output;
      if (list.peakActivations != 0 && activations == list.peakActivations)
        fail("begins more activations than the " +
             std::to_string(list.peakActivations) +
             " that the compiler counted");
      counts.peakActivations = std::max(counts.peakActivations, ++activations);
      return;
    }
    uint8_t done = state ? state->slots : uint8_t(0);
    if ((done & call.kind->needs) != call.kind->needs || !state)
      fail(done & slot::Output ? "runs before the gradient of the input"
                               : "runs without its forward");
    if (done & call.kind->defines)
      fail("runs twice");
    state->slots |= call.kind->defines;
  }

  void compute() {
    auto run = [&](size_t i) {
      try {
        execute(calls[i]);
      } catch (...) {
        calls[i].failure = std::current_exception();
      }
    };
    if (numCalls > 1 && options.overlap == Overlap::Together) {
      if (!crew)
        crew.emplace();
      crew->run(numCalls, run);
    } else {
      for (size_t i = 0; i != numCalls; ++i)
        run(i);
    }
    // What a group makes is released when all of it has ended.
    for (size_t i = 0; i != numCalls; ++i) {
      current = rowOf[i];
      if (calls[i].failure)
        rethrow(std::exchange(calls[i].failure, nullptr));
      keepResults(*current, calls[i]);
    }
  }

  [[noreturn]] void rethrow(std::exception_ptr failure) const {
    try {
      std::rethrow_exception(failure);
    } catch (const Error &) {
      throw;
    } catch (const std::exception &error) {
      std::throw_with_nested(
          errorHere<Error>(std::string("the stage threw: ") + error.what()));
    } catch (...) {
      std::throw_with_nested(errorHere<Error>("the stage threw"));
    }
  }

  void execute(Call &call) {
    switch (call.kind->defines) {
    case slot::Output:
      call.output = stage.forward(call.work, Inputs<Value>(call.inputs));
      break;
    case slot::InputGrad | slot::WeightGrad:
      if constexpr (requires { stage.backward(call.work, nullptr); })
        return keepGrads(call, stage.backward(call.work, gradient(call)));
      throw std::runtime_error("it has no function `backward`");
    case slot::InputGrad:
      if constexpr (requires { stage.backward_input(call.work, nullptr); })
        return keepGrads(call, stage.backward_input(call.work, gradient(call)));
      throw std::runtime_error("it has no function `backward_input`");
    case slot::WeightGrad:
      if constexpr (requires { stage.backward_weight(call.work); })
        return stage.backward_weight(call.work);
      throw std::runtime_error("it has no function `backward_weight`");
    }
  }

  /// The gradient of the output of a stage, summed over its readers.
  Value *gradient(Call &call) {
    if (call.inputs.empty())
      return nullptr;
    Value &sum = call.inputs.front()->value;
    for (size_t i = 1; i < call.inputs.size(); ++i)
      add(sum, call.inputs[i]->value);
    return &sum;
  }

  void add(Value &sum, const Value &gradient) {
    if constexpr (requires { stage.add(sum, gradient); })
      stage.add(sum, gradient);
    else if constexpr (requires { sum += gradient; })
      sum += gradient;
    else
      throw std::runtime_error("it has no function `add`");
  }

  static void keepGrads(Call &call, Value &&gradient) {
    call.grads.push_back(std::move(gradient));
  }
  static void keepGrads(Call &call, std::vector<Value> &&gradients) {
    if (gradients.size() != call.wiring->inputGrads.size())
      throw std::runtime_error(
          std::to_string(gradients.size()) + " gradients for " +
          std::to_string(call.wiring->inputGrads.size()) + " inputs");
    call.grads = std::move(gradients);
  }

  void keepResults(const Row &row, Call &call) {
    const StageWiring &made = *call.wiring;
    if (call.kind->defines & slot::Output && !made.outputGrads.empty())
      keep(made.output, row, static_cast<uint32_t>(made.outputGrads.size()),
           std::move(call.output));
    call.output = Value();
    if (call.kind->defines & slot::InputGrad)
      for (size_t i = 0; i != made.inputGrads.size(); ++i)
        keep(made.inputGrads[i].value, row, 1, gradientFor(call, i));
    for (Held<Value> *value : call.inputs)
      read(*value);
    if (call.kind->defines & slot::WeightGrad)
      held.erase(*held.find(key(made.activation, row)));
    if (call.kind->defines & slot::WeightGrad || !program.hasBackward) {
      --activations;
      stage.release(call.work);
    }
  }

  /// What the i-th source gets.
  Value gradientFor(Call &call, size_t i) const {
    size_t numSources = call.wiring->inputGrads.size();
    if (call.grads.size() == numSources)
      return std::move(call.grads[i]);
    if constexpr (std::is_copy_constructible_v<Value>)
      if (i + 1 != numSources)
        return call.grads.front();
    return std::move(call.grads.front());
  }

  void keep(uint32_t number, const Row &row, uint32_t readers, Value &&value) {
    if (held.find(key(number, row)))
      fail("makes a value twice");
    Held<Value> &kept = held.insert(key(number, row));
    kept.readers = readers;
    kept.value = std::move(value);
  }

  const Program &program;
  uint32_t rank;
  S &stage;
  E &endpoint;
  Options options;
  Wiring wiring;
  const RankProgram &list;

  uint64_t segment = 0, at = 0, next = 0;
  uint32_t times = 0; ///< How often the rows of the segment have run.
  bool loaded = false, ran = false;
  std::vector<Row> rows; ///< Of the item.
  const Row *current = nullptr;

  ValueTable<Value> held;
  std::vector<Source> sources;
  std::vector<Held<Value> *> openBatches;
  uint32_t batches = 0;
  Message<Value> incoming{};
  std::vector<Held<Value> *> inputs; ///< Of a send.

  std::vector<Call> calls; ///< The first numCalls are of the item.
  std::vector<const Row *> rowOf;
  size_t numCalls = 0;
  std::optional<Crew> crew;

  Stats counts;
  uint32_t activations = 0, numReceives = 0;
  std::optional<Label> awaited; ///< Nothing for the receive of a send.
  uint32_t awaitedRank = 0;
};

/// Runs the program of a rank on a transport whose waits return when they have
/// ended. Throws Error; then the other ranks have been told, and end too.
template <Stage S, Endpoint<typename S::Value> E>
Stats run(const Program &program, uint32_t rank, S &stage, E &endpoint,
          const Options &options = {}) {
  try {
    RankRunner<S, E> runner(program, rank, stage, endpoint, options);
    using Progress = typename RankRunner<S, E>::Progress;
    while (runner.step() != Progress::Done)
      ;
    runner.finish();
    return runner.stats();
  } catch (const PeerError &error) {
    endpoint.fail(error.cause());
    throw;
  } catch (const std::exception &error) {
    endpoint.fail(error.what());
    throw;
  }
}

} // namespace ppcc::rt
