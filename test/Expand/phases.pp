// The inner phase wins, also in a block; behind it the outer one goes on.
// RUN: ppcc %s --comm-order=none --emit=ir | FileCheck %s

block inner() { F; phase deep { F; } F; }
schedule s() {
  ranks 1; microbatches 6; placement linear;
  // CHECK:      rank 0 {
  // CHECK-NEXT:     0F0@1
  // CHECK-NEXT:   phase "outer"
  // CHECK-NEXT:     0F1@2 0F2@4
  // CHECK-NEXT:   phase "deep"
  // CHECK-NEXT:     0F3@5
  // CHECK-NEXT:   phase "outer"
  // CHECK-NEXT:     0F4@6 0F5@7
  // CHECK-NEXT:   phase ""
  // CHECK-NEXT:     0B0@8 {{.*}} 0B4@8
  // CHECK-NEXT:   phase "last"
  // CHECK-NEXT:     0B5@9
  // CHECK-NEXT: }
  on rank r {
    F;
    phase outer { F; inner(); }
    phase outer { F; }
    repeat 5 { B; }
    phase last { B; }
  }
}
