// Programs of single numbers, what they are judged by, and what shows that they
// are right.
#pragma once

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Expand/Expand.h"
#include "ppcc/Family/SymbolicExpand.h"
#include "ppcc/Proof/ParametricProgram.h"
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

/// What is noted of the programs of base + step n.
struct ProofArtifacts {
  std::shared_ptr<proof::ResidueFamily> programs;
  std::shared_ptr<proof::Evidence> evidence;

  explicit operator bool() const { return evidence != nullptr; }
  /// Begins with a template without messages; `sample` is one of its programs.
  static ProofArtifacts of(int64_t base, int64_t step, const Program &sample,
                           const proof::Template &family,
                           std::shared_ptr<const proof::Model> model);
  /// Adds the template with messages.
  void setWithMessages(const proof::Template &whole);
};

/// What shows that the program of one number is right; `byData` of its makespan
/// that it is that of a run by data.
ProofArtifacts artifactsOf(int64_t m, const Program &program,
                           ArrayRef<Transport> transports, bool dataOnly,
                           InstanceCompiler &compiler);

/// The model of the programs of a template, one of which is `sample`. Costs are
/// those of the actions and groups of the template.
std::shared_ptr<const proof::Model> modelOf(const Program &sample,
                                            const proof::Template &family);

/// A function of n as one of the numbers of the family, in units.
inline Formula formula(const family::Family &family, proof::Affine value,
                       int64_t unit) {
  return Formula::of(value, family.base, family.step, unit);
}

/// Those of one program, and of its run if it has one.
Metrics metricsOf(const Program &program, const TimedRun *timing);

/// Those of a template without messages, one of whose programs is `sample`.
Metrics metricsOf(const family::Family &family, const proof::Template &program,
                  const proof::Costs &costs, const Program &sample);

/// What stands between two turns of a window on the way of times that leads to
/// the end of the run of n = 2.
std::vector<std::string> bottleneckOf(const proof::Template &program,
                                      const Program &second,
                                      const Simulation &run);
} // namespace ppcc
