// The costs of `model { }`, as the program as text shows them: settings in order, a list for each stage, decimals exactly.
// RUN: ppcc %s --emit=ir --comm-order=none -o %t.ir
// RUN: FileCheck %s --input-file=%t.ir
// RUN: ppcc %t.ir -o - --passes=unroll --emit=ir | FileCheck %s

// CHECK:      {"group": {"max": 1.25},
// CHECK-NEXT: "cost": {"F": 1, "B": {"up": [3,3.1]}, "I": {"down": [0.5,1.000000001], "up": [0.5,1.000000001]}, "W": {"up": 0.8}},
// CHECK-NEXT: "latency": {"down": 0.05, "up": [0.05,0.15]},
// CHECK-NEXT: "bandwidth": 5,
// CHECK-NEXT: "bytes": {"down": [0,0.000001], "up": 1000000.5},
// CHECK-NEXT: "memory": {"F": 1, "B": {"up": -0.5}},
// CHECK-NEXT: "static": {"down": [7,8]},
// CHECK-NEXT: "limit": 80},
schedule s() {
  ranks 2;
  pipe down { stages 2; stage s on rank s;     microbatches 0 .. 1; }
  pipe up   { stages 2; stage s on rank 1 - s; microbatches 1 .. 2; }
  model {
    cost F = 1;
    cost overlap = 5 / 2.0;
    cost I stage s = s == 0 ? 0.5 : 1.000000001;
    cost W pipe up = 0.8;
    memory F = 1;
    memory B pipe up = -0.5;
    static pipe down stage s = 7 + s;
    bytes = 1.0000005e6;
    bytes pipe down stage s = s * 1e-6;
    group max = 1.25;
    cost B pipe up stage s = 3 + 0.1 * s;
  }
  cluster { latency = 0.05; latency pipe up stage s = 0.05 + 0.1 * s; limit = 80; bandwidth = 5; }
  on rank r { F(down); F(up); B(down); B(up); }
}
