// A mistake that many ranks make is reported at its place once, and others beside it.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  ranks 100; microbatches 1; placement linear;
  on rank r {
    F; B;
    // CHECK: errors-once.pp:[[#@LINE+2]]:5: error: no W is pending [E0506]
    // CHECK: note: on rank 0
    W;
    // CHECK: errors-once.pp:[[#@LINE+1]]:24: error: rank 7 has no chunk 1 [E0501]
    if r % 10 == 7 { F(1); }
  }
}
