// Padding lays out the order as if there were more microbatches; a group that it leaves with one action is that action.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s

schedule s(M: int = 1) {
  ranks 1; placement linear;
  microbatches M pad 3;
  // CHECK: rank 0: 0F0 0I0 0W0{{$}}
  // TWO: rank 0: 0F0 (0F1;0I0)OVERLAP_F_I 0I1 0W0 0W1{{$}}
  on rank r {
    F;
    repeat padded - 1 { overlap { F; I; } }
    if issued(F) == 3 and pending == 2 { W(mb: 0); }
    I;
    drain W;
  }
}
// RUN: ppcc %s -D M=2 --comm-order=none --emit=actions | FileCheck %s --check-prefix=TWO
