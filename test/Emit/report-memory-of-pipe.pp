// What is said of the memory of B in one pipe is nothing that B of another pipe takes or gives.
// RUN: ppcc report %s | FileCheck %s
// CHECK:      activations  memory     at  action  at the end
// CHECK-NEXT: 1       1   0  0F0              0{{$}}
schedule two() {
  ranks 1;
  pipe a { microbatches 0 .. 1; stages 1; stage s on rank 0; }
  pipe b { microbatches 1 .. 2; stages 1; stage s on rank 0; }
  model { memory F = 1; memory B pipe a = -1; }
  on rank 0 { F(a); B(a); F(b); B(b); }
}
