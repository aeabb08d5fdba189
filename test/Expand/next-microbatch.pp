// An action takes the next microbatch of its chunk, counted with those that were named; B and I share the count.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s

schedule s() {
  ranks 1; microbatches 4; placement linear;
  on rank r {
    // CHECK: rank 0: 0F1 0F0 0F2 0F3 0B0 0I1 0B2 0W1 0I3 0W3
    F(mb: 1); F(mb: 0); F; F;
    B; I; B; W; I(0, mb: 3); W(mb: 3);
  }
}
