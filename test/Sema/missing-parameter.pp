// What follows from a parameter without a value is no mistake of its own; another mistake is.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: not ppcc %s -D P=two 2>&1 | FileCheck %s --check-prefix=BAD --implicit-check-not=error:
// BAD: -D P: error: `two` is not a valid value for parameter `P: int` [E0403]
// BAD: error: division by zero in `%` [E0407]
// RUN: not ppcc %s -D P=0 -D k=1 2>&1 | FileCheck %s --check-prefix=ZERO --implicit-check-not=error:
// ZERO: error: division by zero in `/` [E0407]
// RUN: not ppcc %s -D P=0 -D k=1 -D n=1 -D twice=1 2>&1 | FileCheck %s --check-prefix=REQUIRED --implicit-check-not=error:
// REQUIRED: error: needs a rank [E0404]
// REQUIRED: error: needs two microbatches [E0404]

// CHECK:      missing-parameter.pp:[[#@LINE+2]]:12: error: parameter `P` has no value [E0402]
// CHECK:      missing-parameter.pp:[[#@LINE+1]]:79: error: division by zero in `%` [E0407]
schedule s(P: int, M: int = 1, n: int = M / P, twice: int = 4 / n, k: int = 1 % 0) {
  require P > 0, "needs a rank";
  let share = M / P;
  require share > 0, "needs a microbatch a rank";
  require M > 1, "needs two microbatches";
  ranks P; microbatches n + k + twice; placement linear;
  on rank r { repeat M { F; B; } }
}
