// Each let that fails says so once; what uses its value says nothing.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s(f: float = 0, zero: int = 0) {
  ranks 2; microbatches 2; placement linear;
  // CHECK:      division-by-zero-head.pp:[[#@LINE+4]]:19: error: division by zero in `/` [E0407]
  // CHECK-NEXT:   [[#@LINE+3]] |   let ratio = 1.5 / f;
  // CHECK-NEXT:     |                   ^
  // CHECK-NEXT: note: guard the division with `if`, `?:` or `require`
  let ratio = 1.5 / f;
  // CHECK:      division-by-zero-head.pp:[[#@LINE+1]]:17: error: division by zero in `%` [E0407]
  let count = 4 % zero;
  fn both() = ratio > count;
  let more = both() ? 1 : 0;
  require count > more, "more";
  on rank r { F; B; }
}
// RUN: not ppcc %s -D f=0.5 2>&1 | FileCheck %s --check-prefix=MOD --implicit-check-not=error:
// MOD: error: division by zero in `%` [E0407]
