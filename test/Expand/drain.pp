// W takes the oldest of all, W(c) the oldest of a chunk; drain takes all, or all of a chunk, and nothing when there is nothing.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s

schedule s() {
  ranks 1; microbatches 3; placement loop(2);
  // CHECK: rank 0: {{.*}} 1I0 0I0 1I1 0I1 1I2 0I2 1W0 0W0 0W1 0W2 1W1 1W2{{$}}
  on rank r {
    drain W; drain W(1);
    repeat 3 { F(0); F(1); }
    repeat 3 { I(1); I(0); }
    W; W(0);
    drain W(0);
    drain W(0);
    drain W;
  }
}
