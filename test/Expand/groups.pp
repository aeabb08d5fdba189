// A group may hold let, if, loops and calls; an empty one is nothing, one action is itself.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s

block some(n) { repeat n { F; } }
schedule s() {
  ranks 1; microbatches 4; placement linear;
  // CHECK: rank 0: 0F0 (0F1;0F2;0F3)OVERLAP_F_F_F (0B0;0B1)OVERLAP_B_B 0B2 0B3{{$}}
  on rank r {
    overlap { }
    overlap { if true { some(1); } }
    overlap { let n = 1; F; some(n + 1); }
    overlap { while issued(B) < 2 { B; } }
    overlap { for i in 0 .. 0 { F; } B; }
    B;
  }
}
