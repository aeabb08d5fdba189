// Microbatches of different length: their time, memory and messages.
// RUN: split-file %s %t
// RUN: ppcc %t/all.pp --emit=report | FileCheck %t/all.pp
// RUN: ppcc %t/all.pp --emit=ir --comm-order=none | FileCheck %t/all.pp --check-prefix=IR
// RUN: ppcc %t/all.pp --emit=ir | ppcc - --passes=verify --emit=ir | FileCheck %t/all.pp --check-prefix=IR
// RUN: ppcc %t/all.pp -o %t/all.json && FileCheck %t/all.pp --check-prefix=JSON --input-file=%t/all.json
// RUN: ppcc %t/all.json --from=json --emit=report | FileCheck %t/all.pp
// RUN: ppcc %t/kinds.pp --emit=report | FileCheck %t/kinds.pp
// RUN: ppcc %t/plain.pp --costs=%t/costs.json --emit=report | FileCheck %t/all.pp
// RUN: ppcc %t/nodes.pp --emit=report | FileCheck %t/nodes.pp
// RUN: ppcc %t/nodes.pp --emit=times | FileCheck %t/nodes.pp --check-prefix=TIMES
// RUN: ppcc %t/two.pp --emit=report | FileCheck %t/two.pp

//--- all.pp
// Two ranks, two microbatches, the second three times as long. Forwards take 1 and 3, backwards 2 and 6, messages 1
// and 3: rank 0 runs 0F0 0..1, 0F1 1..4; rank 1 runs 1F0 2..3, 1B0 3..5, 1F1 7..10, 1B1 10..16; 0B0 6..8, 0B1 19..25.
// CHECK: makespan 25
// IR: "bandwidth": 2
// IR: "scale": {"all": [1,3]}
// JSON: "scale": {"all": [1,3]}
schedule all() {
  ranks 2; microbatches 2; placement linear;
  model {
    bytes = 2;
    scale microbatch m = 1 + 2 * m;
  }
  cluster { bandwidth = 2; }
  on rank r { if r == 0 { F; F; B; B; } else { F; B; F; B; } }
}

//--- plain.pp
schedule plain() {
  ranks 2; microbatches 2; placement linear;
  on rank r { if r == 0 { F; F; B; B; } else { F; B; F; B; } }
}

//--- costs.json
{"bytes": 2, "bandwidth": 2, "scale": {"all": [1, 3]}}

//--- kinds.pp
// Only the forward of microbatch 1 is dearer, and it alone holds more.
// CHECK: makespan 9.5
schedule kinds() {
  ranks 1; microbatches 2; placement linear;
  model {
    scale microbatch m = 7;
    scale time microbatch m = 1;
    scale F microbatch m = m == 0 ? 1 : 4.5;
    scale memory microbatch m = 1;
    cost B = 2;
  }
  on rank r { F; F; B; B; }
}

//--- nodes.pp
// Each node is scaled: 2, then 4 for the group of F1, twice as long, and B0 beside it, then 8.
// CHECK: makespan 14
//      TIMES: 0,0F0,,0,2
// TIMES-NEXT: 0,0F1,0,2,6
// TIMES-NEXT: 0,0B0,0,2,6
// TIMES-NEXT: 0,0B1,,6,14
schedule nodes() {
  ranks 1; microbatches 2; placement linear;
  model {
    layer l { F: a @ x -> b @ y; B: c @ y -> d @ x; }
    layers l;
    cost F.a = 1; cost F.b = 1; cost B.c = 2; cost B.d = 2;
    scale time microbatch m = 1 + m;
  }
  on rank r { F; overlap { F; B; } B; }
}

//--- two.pp
// A column runs over the microbatches of all pipes.
// CHECK: makespan 27
schedule two() {
  ranks 1;
  pipe a { placement linear; microbatches 4 .. 6; }
  pipe b { placement linear; microbatches 1 .. 2; }
  model { scale microbatch m = m - 1 + (m == 1 ? 2 : 0); cost B = 2; }
  on rank r { repeat 2 { F(a); B(a); } F(b); B(b); }
}
