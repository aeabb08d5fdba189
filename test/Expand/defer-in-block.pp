// defer holds for the blocks that are called in it, a lag for W's from before.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s

block back(n) { repeat n { B; } }
schedule s() {
  ranks 1; microbatches 4; placement linear;
  // CHECK: rank 0: {{.*}}0F3 0I0 0I1 0I2 0W0 0W1 0I3 0W2 0W3{{$}}
  on rank r {
    repeat 4 { F; }
    I; I;
    defer W lag 1 { back(2); }
    drain W;
  }
}
