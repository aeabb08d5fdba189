// Programs of single numbers of microbatches, by the ordinary compiler.
#pragma once

#include "ppcc/Compiler/CommPolicy.h"
#include "ppcc/Expand/Expand.h"
#include "ppcc/Prove/Prove.h"

namespace ppcc {

/// Takes diagnostics, and keeps the first.
struct CapturedDiagnostics {
  std::optional<Diagnostic> first;
  bool isExcluded = false; ///< By what the schedule requires.
  DiagnosticEngine diags{[this](const Diagnostic &found) { take(found); }};

  std::string message() const { return first ? first->message : ""; }
  Location place() const { return first ? first->place : Location(); }

private:
  void take(const Diagnostic &found);
};

class InstanceCompiler {
public:
  InstanceCompiler(const ProveRequest &request, Session &session,
                   const Checked &checked)
      : request(request), session(session), checked(checked) {}

  /// The program of a number, without messages; with them, and verified, where
  /// `addsMessages`.
  std::optional<Program> compile(int64_t m, bool addsMessages,
                                 CapturedDiagnostics &quiet);
  std::optional<sema::Instance> instantiate(int64_t m,
                                            sema::Evaluator &evaluator,
                                            CapturedDiagnostics &quiet) const;
  std::optional<CommPolicy> policyFor(const Program &program,
                                      DiagnosticEngine &diags) const;
  /// What of a program none of the checks speaks about, and where it is said;
  /// and whether its orders of messages are projections of one order of all
  /// actions.
  std::pair<std::string, Location> unsupported(const Program &program,
                                               bool &ordersGlobally) const;
  /// Adds the messages of a policy; false after a report. Where `times` is
  /// given, nothing is checked.
  bool addMessages(Program &program, const CommPolicy &policy,
                   CapturedDiagnostics &quiet,
                   PlanTimes *times = nullptr) const;

  /// Whether something was wrong for all numbers, and reported.
  bool failed = false;

private:
  bool setCosts(Program &program);

  const ProveRequest &request;
  Session &session;
  const Checked &checked;
};

} // namespace ppcc
