// A line on a terminal that says how far a long run is.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// Draws `[####      ] 4/10 what` over itself; writes nothing to what is no
/// terminal, and wipes the line at the end.
class Progress {
public:
  Progress(raw_ostream &out, size_t total)
      : out(out), total(total), isShown(out.is_displayed()) {}
  ~Progress() { clear(); }
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// Begins the next of the `total` steps.
  void next(StringRef what);
  /// Wipes the line, so that something else can be written.
  void clear();

private:
  raw_ostream &out;
  size_t total, done = 0;
  bool isShown;
};

} // namespace ppcc
