// What is declared and not used is checked, but does nothing.
// RUN: ppcc %s --emit=actions | FileCheck %s

fn boom(x) = x / 0;
block unused() { F(mb: 1 / 0); }
schedule s() {
  ranks 2; microbatches 1;
  stages 1;
  stage s on rank 1;
  // CHECK:      rank 0:
  // CHECK-NEXT: rank 1: 0F0 0B0
  on rank r { if r == 1 { F; B; } }
}
