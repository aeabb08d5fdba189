// A rank that still owes weight gradients at its end.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
// A rank that ends in another error does not report those, too.
// RUN: sed 's/if r == 1 { drain W; }/if r == 0 { drain W; } else { F(9); }/' %s > %t.pp
// RUN: not ppcc %t.pp 2>&1 | FileCheck %s --check-prefix=STOPPED --implicit-check-not=error:
// STOPPED: error: rank 1 has no chunk 9 [E0501]

schedule s() {
  ranks 2; microbatches 3; placement linear;
  // CHECK:      left-pending.pp:[[#@LINE+7]]:3: error: rank 0 ends with 2 W still pending, the oldest 0W1 [E0508]
  // CHECK-NEXT:   [[#@LINE+6]] |   on rank r {
  // CHECK-NEXT:     |   ^~
  // CHECK-NEXT: left-pending.pp:[[#@LINE+7]]:16: note: it was left by this action
  // CHECK-NEXT:   [[#@LINE+6]] |     repeat 2 { I; }
  // CHECK-NEXT:     |                ^
  // CHECK-NEXT: note: run them with `W;`, or all of them with `drain W;`
  on rank r {
    repeat 3 { F; }
    I; W;
    repeat 2 { I; }
    if r == 1 { drain W; }
  }
}
