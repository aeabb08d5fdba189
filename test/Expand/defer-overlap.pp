// A W that a lag takes because of a group comes after the group.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s

schedule s() {
  ranks 1; microbatches 3; placement linear;
  // CHECK: rank 0: 0F0 (0F1;0I0)OVERLAP_F_I 0W0 (0F2;0I1)OVERLAP_F_I 0W1 0I2 0W2
  on rank r {
    F;
    defer W lag 0 {
      repeat 2 { overlap { F; B; } }
      B;
    }
  }
}
