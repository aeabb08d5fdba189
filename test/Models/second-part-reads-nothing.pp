// The second part does not read the first, so there is no edge between them; the third reads both.
// RUN: ppcc %s --emit=actions | FileCheck %s --match-full-lines
// CHECK:      rank 0: 0F0 0SEND_F0>2 0RECV_B0<2 0B0
// CHECK-NEXT: rank 1: 1F0 1SEND_F0 1RECV_B0 1B0
// CHECK-NEXT: rank 2: 2RECV_F0<0 2RECV_F0 2F0 2B0 2SEND_B0>0 2SEND_B0
schedule parts() {
  ranks 3; microbatches 1; stages 3; stage s on rank s;
  model {
    layer t { cost F = 1; }
    part image { layers t; stages 1; }
    part sound { layers t; stages 1; }
    part text { layers t; stages 1; reads image, sound; }
  }
  on rank r { F; B; }
}
