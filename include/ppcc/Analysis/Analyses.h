// What is known about a program as it stands.
#pragma once

#include "ppcc/Analysis/Index/GroupIndex.h"
#include "ppcc/Analysis/Report/ReceiveBuffers.h"
#include "ppcc/Analysis/Run/Simulation.h"
#include "ppcc/Basic/Diagnostics.h"

namespace ppcc {

/// The analyses of a program. Each is made when it is first asked for, and kept
/// with the program until that changes, or goes to another place; so long may
/// its results be held.
class Analyses {
public:
  explicit Analyses(const Program &program) : program(program) {}

  const ProgramIndex &index() const {
    return keep([&] { return ProgramIndex(program); });
  }
  const MessageIndex &messages() const {
    return keep([&] { return MessageIndex(program, index()); });
  }
  const ReceiveBuffers &buffers() const {
    return keep([&] { return ReceiveBuffers(program, index()); });
  }
  const GroupIndex &groups() const {
    return keep([&] { return GroupIndex(program); });
  }
  const Durations &durations() const {
    return keep([&] { return Durations(program); });
  }
  /// The run on a transport; by data alone for a program without messages.
  /// Nothing, after a diagnostic, where times are too large, and for a program
  /// that does not reach its end. O(actions + edges).
  const TimedRun *timedRun(const Transport &transport,
                           DiagnosticEngine &diags) const;

private:
  template <class Make>
  const std::invoke_result_t<Make> &keep(Make make,
                                         const std::string &name = "") const {
    return program.derived.get(name, make);
  }

  const Program &program;
};

} // namespace ppcc
