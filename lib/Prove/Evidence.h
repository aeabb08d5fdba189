// What shows that programs are right.
#pragma once

#include "InstanceCompiler.h"

#include "ppcc/Proof/ParametricProgram.h"

namespace ppcc {

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

} // namespace ppcc
