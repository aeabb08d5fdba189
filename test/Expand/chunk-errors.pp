// An action must name a chunk that its rank has, and only one.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  ranks 5;
  pipe down { placement loop(2); microbatches 0 .. 1; }
  pipe up { stages 1; stage s on rank 1; microbatches 1 .. 2; }
  on rank r {
    // CHECK:      chunk-errors.pp:[[#@LINE+4]]:17: error: rank 0 hosts 2 stages, so `F` must say which [E0502]
    // CHECK-NEXT:   [[#@LINE+3]] |     if r == 0 { F; }
    // CHECK-NEXT:     |                 ^
    // CHECK-NEXT: note: write the chunk, `F(0)`, or the pipe, `F(down)`
    if r == 0 { F; }
    // CHECK:      chunk-errors.pp:[[#@LINE+1]]:19: error: rank 1 hosts 2 stages of pipe `down`, so `F` must say which [E0502]
    if r == 1 { F(down); }
    // CHECK:      chunk-errors.pp:[[#@LINE+5]]:19: error: rank 2 has no chunk 2 [E0501]
    // CHECK-NEXT:   [[#@LINE+4]] |     if r == 2 { F(2); }
    // CHECK-NEXT:     |                   ^
    // CHECK-NEXT: note: rank 2 has 2 chunks
    // CHECK-NEXT: note: the chunks of a rank are the stages that it hosts, numbered from 0 in ascending order
    if r == 2 { F(2); }
    // CHECK:      chunk-errors.pp:[[#@LINE+4]]:19: error: rank 3 hosts no stage of pipe `up` [E0503]
    // CHECK-NEXT:   [[#@LINE+3]] |     if r == 3 { F(up); }
    // CHECK-NEXT:     |                   ^~
    // CHECK-NEXT: note: place a stage on the rank, or guard the action with `if`
    if r == 3 { F(up); }
    // CHECK:      chunk-errors.pp:[[#@LINE+2]]:34: error: rank 4 has no chunk -1 [E0501]
    // CHECK:      note: rank 4 has 2 chunks
    if r == 4 { repeat issued(F, -1) { } }
  }
}
