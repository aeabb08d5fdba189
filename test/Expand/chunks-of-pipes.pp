// With pipes, a rank's chunks are numbered pipe after pipe; a pipe names the rank's stage in it.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s

schedule s() {
  ranks 2;
  pipe down { placement linear; microbatches 0 .. 1; }
  pipe up { stages 2; stage t on rank 1 - t; microbatches 1 .. 3; }
  fn other(p: pipe) = p == down ? up : down;
  // CHECK:      rank 0: 0F0 1F1 1F2 1B1 1B2 0B0
  // CHECK-NEXT: rank 1: 1F0 0F1 0F2 0B1 0B2 1B0
  on rank r {
    let first = r == 0 ? down : other(up);
    F(0);
    repeat 2 { F(other(first)); }
    repeat padded(up) { B(up); }
    repeat issued(F, down) { B(first); }
  }
}
