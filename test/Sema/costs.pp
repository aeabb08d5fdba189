// The costs of `model { }`, as the program as text shows them: settings in order, a list for each stage, decimals exactly.
// RUN: ppcc %s --emit=ir --comm-order=none -o %t.ir
// RUN: FileCheck %s --input-file=%t.ir
// RUN: ppcc-opt %t.ir -o - | FileCheck %s

// CHECK:      cost F 1
// CHECK-NEXT: cost I "down" [0.5 1.000000001]
// CHECK-NEXT: cost I "up" [0.5 1.000000001]
// CHECK-NEXT: cost W "up" 0.8
// CHECK-NEXT: cost B "up" [3 3.1]
// CHECK-NEXT: cost overlap 2.5
// CHECK-NEXT: latency 0.05
// CHECK-NEXT: }
schedule s() {
  ranks 2;
  pipe down { stages 2; stage s on rank s;     microbatches 0 .. 1; }
  pipe up   { stages 2; stage s on rank 1 - s; microbatches 1 .. 2; }
  model {
    cost F = 1;
    cost overlap = 5 / 2.0;
    cost I stage s = s == 0 ? 0.5 : 1.000000001;
    cost W pipe up = 0.8;
    latency = 0.05;
    memory F = 1;
    bandwidth = 5;
    bytes = 1.0e15;
    memory limit = -1;
    cost B pipe up stage s = 3 + 0.1 * s;
  }
  on rank r { F(down); F(up); B(down); B(up); }
}
