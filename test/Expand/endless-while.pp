// An iteration of while without an action is the first of endlessly many.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  ranks 2; microbatches 2; placement linear;
  on rank r {
    while issued(F) < 2 {
      if r == 0 or issued(F) < 1 { F; }
    }
    // CHECK:      endless-while.pp:[[#@LINE+7]]:5: error: this `while` never ends: an iteration without an action cannot change its condition [E0509]
    // CHECK-NEXT:   [[#@LINE+6]] |     while true { repeat 1 { } }
    // CHECK-NEXT:     |     ^~~~~
    // CHECK-NEXT: note: on rank 0
    // CHECK-NEXT: note: issue an action in each iteration, or change the condition
    // CHECK:      endless-while.pp:[[#@LINE-8]]:5: error: this `while` never ends: an iteration without an action cannot change its condition [E0509]
    // CHECK:      note: on rank 1
    while true { repeat 1 { } }
  }
}
