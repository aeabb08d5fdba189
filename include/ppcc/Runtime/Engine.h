// Executes the program of a rank, whatever the stage computes and whatever
// carries the messages.
#pragma once

#include "ppcc/Runtime/Digest.h"
#include "ppcc/Runtime/Runner.h"

namespace ppcc::rt {

/// A rank's part in a job, on a transport whose waits return when they have
/// ended. Programs are linked once and run as often as you like; all ranks link
/// and run the same, in the same order. The stage, the endpoint and the linked
/// program must stay where they are.
///
/// Its functions throw Error; then the other ranks have been notified, and end
/// too, unless it is a ProgramMismatch, which leaves the session without a
/// program.
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
    notifyPeersOnError([&] {
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
    return notifyPeersOnError([&] {
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
  template <class Function> auto notifyPeersOnError(Function function) {
    try {
      return function();
    } catch (const ProgramMismatch &) {
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
};

/// Runs the program of a rank once.
template <Stage S, Endpoint<typename S::Value> E>
Stats run(const Program &program, uint32_t rank, S &stage, E &endpoint,
          const Options &options = {}) {
  return Session<S, E>(program, rank, stage, endpoint, options).step();
}

} // namespace ppcc::rt
