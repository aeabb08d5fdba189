// Each pipe has its own padding, counted from its first microbatch.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s

schedule s() {
  ranks 1;
  pipe a { placement linear; microbatches 4 .. 6 pad 3; }
  pipe b { placement linear; microbatches 0 .. 1; }
  // CHECK: rank 0: 0F4 0F5 0B5 0B4 0F0 0B0
  on rank r {
    repeat padded(a) { F(a); }
    for i in 0 .. padded(a) { B(a, mb: 6 - i); }
    repeat padded(b) { F(b); B(1); }
  }
}
