// An action of a block knows each call that led to it.
// RUN: ppcc %s --comm-order=none --emit=ir | FileCheck %s

block inner() {
  F;
}
block outer(n) {
  repeat n { inner(); }
  inner(); B;
}
schedule s() {
  ranks 1; microbatches 3; placement linear;
  on rank r {
    outer(2);
    repeat 2 { B; }
  }
}
// CHECK:      [-1,0,0,0],
// CHECK-NEXT: [0,14,5,0],
// CHECK-NEXT: [0,8,14,1],
// CHECK-NEXT: [0,5,3,2],
// CHECK-NEXT: [0,9,3,1],
// CHECK-NEXT: [0,5,3,4],
// CHECK-NEXT: [0,9,12,1],
// CHECK-NEXT: [0,15,16,0]
// CHECK:      0F0@3 0F1@3 0F2@5 0B0@6 0B1@7 0B2@7
