// A cap counts the forwards of all chunks of a rank, from the first on.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s --match-full-lines
//      CHECK: rank 0: 0F0 2F0 2I0 0F1 0I0 2F1 2W0 0W0 2I1 0F2 0I1 2F2 2W1 0W1 2I2 2W2 0I2 0W2
// CHECK-NEXT: rank 1: 1F0 3F0 3I0 3W0 1I0 1F1 1W0 3F1 3I1 3W1 1I1 1F2 1W1 3F2 3I2 3W2 1I2 1W2
schedule caps() {
  ranks 2; microbatches 3; stages 4; stage s on rank s % 2;
  on rank r { defer W fill cap 2 { repeat 3 { F(0); F(1); B(1); B(0); } } }
}
