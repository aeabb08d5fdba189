// A name of an inner scope hides the outer one, to the end of its braces.
// RUN: ppcc %s --emit=actions | FileCheck %s

fn n() = 1;
schedule s(M: int = 3) {
  ranks 1; microbatches M; placement linear;
  let n = 2;
  on rank r {
    // CHECK: rank 0: 0F0 0F1 0F2 0B0 0B1 0B2
    repeat n { let n = 1; repeat n { F; } }
    for n in 0 .. 1 { repeat n + 1 { F; } }
    repeat n + 1 { B; }
  }
}
