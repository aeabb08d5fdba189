// What an insertion asks of its microbatch, stage and rank, each by a name of its own, in two pipes.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s --match-full-lines
//      CHECK: rank 0: 0F0 0F1 1F2 1F3 1A3 0B0 0B1 1B2 1B3
// CHECK-NEXT: rank 1: 1F0 1F1 1A1 0F2 0F3 1B0 1B1 0C3 0B2 0B3
action A { after F; }
action C { before B; }
schedule bindings() {
  ranks 2;
  pipe left { microbatches 0 .. 2; placement linear; }
  pipe right { microbatches 2 .. 4; stages 2; stage s on rank 1 - s; }
  insert A after F for microbatch m, stage s, rank r when s == 1 and m == (r == 0 ? 3 : 1);
  insert C before B by 1 + m - m for rank r, stage s, microbatch m when r == 1 and s == 0 and m == 3;
  on rank r {
    if r == 0 { F(left); F(left); F(right); F(right); B(left); B(left); B(right); B(right); }
    else { F(left); F(left); F(right); F(right); B(left); B(left); B(right); B(right); }
  }
}
