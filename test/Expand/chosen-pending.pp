// W's that are taken by their microbatch, between others that become pending.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s --match-full-lines
// CHECK: rank 0: 0F0 0F1 0F2 0F3 0I0 0I1 0W1 0I2 0W2 0I3 0W3 0W0
schedule s() {
  ranks 1; microbatches 4; placement linear;
  on rank r { repeat 4 { F; } I; I; W(mb: 1); I; W(mb: 2); I; W(mb: 3); W; }
}
