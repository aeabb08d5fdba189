// A W that is not on the queue.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  ranks 1; microbatches 2; placement loop(2);
  on rank r {
    F(0);
    // CHECK:      pending-errors.pp:[[#@LINE+5]]:5: error: no W is pending [E0506]
    // CHECK-NEXT:   [[#@LINE+4]] |     W;
    // CHECK-NEXT:     |     ^
    // CHECK-NEXT: note: on rank 0
    // CHECK-NEXT: note: each I adds a W to the queue of its rank, and each W takes one; `pending` counts them
    W;
    // CHECK:      pending-errors.pp:[[#@LINE+2]]:5: error: no W of stage 1 is pending [E0506]
    // CHECK:      note: on rank 0
    W(1);
    I(0);
    // CHECK:      pending-errors.pp:[[#@LINE+2]]:5: error: no W of stage 1 is pending [E0506]
    // CHECK:      note: on rank 0
    W(1);
    // CHECK:      pending-errors.pp:[[#@LINE+5]]:5: error: 0W1 is not pending [E0507]
    // CHECK-NEXT:   [[#@LINE+4]] |     W(0, mb: 1);
    // CHECK-NEXT:     |     ^~~~~~~~~~~
    // CHECK-NEXT: note: on rank 0
    // CHECK-NEXT: note: its I has not run on this rank, or its W has run already
    W(0, mb: 1);
    // CHECK:      pending-errors.pp:[[#@LINE+2]]:5: error: 0W-1 is not pending [E0507]
    // CHECK:      note: on rank 0
    W(0, mb: -1);
    W(0, mb: 0);
    // CHECK:      pending-errors.pp:[[#@LINE+2]]:5: error: 0W0 is not pending [E0507]
    // CHECK:      note: on rank 0
    W(0, mb: 0);
  }
}
