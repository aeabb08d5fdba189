// A rank without stages can do nothing, and need not.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  ranks 2; microbatches 1;
  stages 1; stage s on rank 0;
  on rank r {
    if r == 0 and pending + padded == 1 { F; B; }
    // CHECK:      no-chunk.pp:[[#@LINE+4]]:12: error: rank 1 hosts no stage [E0503]
    // CHECK-NEXT:   [[#@LINE+3]] |     else { F; }
    // CHECK-NEXT:     |            ^
    // CHECK-NEXT: note: place a stage on the rank, or guard the action with `if`
    else { F; }
  }
}
