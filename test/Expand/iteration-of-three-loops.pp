// Of an error in nested loops, the value of each variable is printed.
// RUN: not ppcc %s 2>&1 | FileCheck %s
// CHECK: error: microbatch 15 of stage 0 does not exist: its pipe has 0..1 [E0505]
// CHECK: note: on rank 0, in the iteration with a = 4, b = 5, c = 6{{$}}
schedule iterations() {
  ranks 1; microbatches 1; placement linear;
  on rank r {
    for a in 4 .. 5 { for b in 5 .. 6 { for c in 6 .. 7 { F(mb: a + b + c); } } }
  }
}
