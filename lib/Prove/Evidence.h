// What shows that programs are right.
#pragma once

#include "Single.h"

#include "ppcc/Proof/Programs.h"

namespace ppcc {

/// What is noted of the programs of base + step n.
struct Notes {
  std::shared_ptr<proof::Programs> programs;
  std::shared_ptr<proof::Evidence> evidence;

  explicit operator bool() const { return evidence != nullptr; }
  /// Begins with a template without messages; `sample` is one of its programs.
  static Notes of(int64_t base, int64_t step, const Program &sample,
                  const proof::Template &family,
                  std::shared_ptr<const proof::Model> model);
  /// Adds the template with messages.
  void carry(const proof::Template &whole);
};

/// What shows that the program of one number is right; `byData` of its makespan
/// that it is that of a run by data.
Notes notesOf(int64_t m, const Program &program, ArrayRef<Transport> transports,
              bool byData, Singles &singles);

} // namespace ppcc
