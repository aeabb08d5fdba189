// The second pipe has far more microbatches than the first.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s
//      CHECK: rank 0: 0F0 0F1 0F2 0I0 0I1 0F3 0I2 0F4 0I3 0F5 0I4 {{.*}} 0W2998 0W2999{{$}}
// CHECK-NEXT: rank 1: 1F0 1F1 1I0 1I1 1F2 1I2 1F3 1I3 1F4 1I4 1F5 {{.*}} 1W2998 1W2999{{$}}
schedule longer() {
  ranks 2;
  pipe a { placement linear; microbatches 0 .. 1; }
  pipe b { placement linear; microbatches 1 .. 3000; }
  model { memory F = 1; memory I = -1; }
  cluster { limit = 6; }
  on rank r { defer W fill { F(a); B(a); repeat 2999 { F(b); B(b); } } }
}
