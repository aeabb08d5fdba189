// What PyTorch's CSV cannot express.
// RUN: split-file %s %t
// RUN: not ppcc %t/pipes.pp --emit=torch-csv 2>&1 | FileCheck %t/pipes.pp
// RUN: not ppcc %t/pipes.pp --emit=torch-csv-compute 2>&1 | FileCheck %t/pipes.pp
// RUN: not ppcc %t/lengths.pp --emit=torch-csv 2>&1 | FileCheck %t/lengths.pp
// RUN: not ppcc %t/skip.pp --emit=torch-csv 2>&1 | FileCheck %t/skip.pp
// RUN: not ppcc %t/group.pp --emit=torch-csv 2>&1 | FileCheck %t/group.pp
// RUN: not ppcc %t/old.pp --emit=torch-csv --torch-version=2.8 2>&1 | FileCheck %t/old.pp
// RUN: not ppcc %t/silent.pp --emit=torch-csv --comm-order=none 2>&1 | FileCheck %t/silent.pp
// RUN: not ppcc %t/order.pp --emit=torch-csv 2>&1 | FileCheck %t/order.pp
// RUN: not ppcc %t/forward.pp --emit=torch-csv 2>&1 | FileCheck %t/forward.pp
// RUN: not ppcc %t/forward.pp --emit=torch-csv-compute 2>&1 | FileCheck %t/forward.pp
// RUN: not ppcc %t/idle.pp --emit=torch-csv 2>&1 | FileCheck %t/idle.pp
// RUN: not ppcc %t/gap.pp --emit=torch-csv-compute 2>&1 | FileCheck %t/gap.pp
// RUN: not ppcc %t/late.pp --emit=torch-csv 2>&1 | FileCheck %t/late.pp

//--- pipes.pp
schedule pipes() {
  ranks 2;
  pipe down { stages 2; stage s on rank s;     microbatches 0 .. 1; }
  pipe up   { stages 2; stage s on rank 1 - s; microbatches 1 .. 2; }
  on rank r {
    if r == 0 { F(down); F(up); B(up); B(down); } else { F(up); F(down); B(down); B(up); }
  }
}
// CHECK: pipes.pp:6:{{[0-9]+}}: error: stage 0 is on rank 0 in pipe `down` and on rank 1 in pipe `up` [E0901]
// CHECK-NOT: error

//--- lengths.pp
schedule lengths() {
  ranks 1;
  pipe short { stages 1; stage s on rank 0; microbatches 0 .. 1; }
  pipe long  { stages 2; stage s on rank 0; microbatches 1 .. 2; }
  backward when false;
  on rank r { F(0); F(1); F(2); }
}
// CHECK: lengths.pp:6:27: error: stage 1 is on rank 0 in pipe `long` and on no rank in pipe `short` [E0901]

//--- skip.pp
schedule skip() {
  ranks 3;
  microbatches 1;
  placement linear;
  edge stage 0 -> stage 2;
  on rank r { F; B; }
}
// CHECK: skip.pp:6:15: error: pipe `main` has an edge from stage 0 to stage 2 [E0902]

//--- group.pp
schedule group() {
  ranks 1;
  microbatches 2;
  placement linear;
  on rank r { overlap { F; F; } B; B; }
}
// CHECK: group.pp:5:25: error: PyTorch has no group `(0F0;0F1)OVERLAP_F_F` [E0903]

//--- old.pp
schedule old() {
  ranks 1;
  microbatches 2;
  placement linear;
  on rank r { F; overlap { F; B; } B; }
}
// CHECK: old.pp:5:28: error: `(0F1;0B0)OVERLAP_F_B` needs PyTorch 2.9, but the output is for 2.8 [E0904]

//--- silent.pp
schedule silent() {
  ranks 2;
  microbatches 1;
  placement linear;
  on rank r { F; B; }
}
// CHECK: silent.pp:5:15: error: stages 0 and 1 are on different ranks, but the program sends nothing [E0905]

//--- order.pp
schedule order() {
  ranks 1;
  microbatches 2;
  placement linear;
  on rank r { F(0, mb: 1); F(0, mb: 0); B; B; }
}
// CHECK: order.pp:5:28: error: the last stage runs `0F0` after `0F1` [E0906]

//--- forward.pp
schedule forward() {
  ranks 2;
  microbatches 1;
  placement linear;
  backward when false;
  on rank r { F; }
}
// CHECK: forward: error: the program has no backward [E1017]

//--- idle.pp
schedule idle() {
  ranks 2;
  pipe main { stages 1; stage s on rank 0; microbatches 0 .. 1; }
  on rank r { if r == 0 { F; B; } }
}
// CHECK: idle: error: rank 1 has no stage [E1018]

//--- gap.pp
schedule gap() {
  ranks 1;
  pipe first  { stages 1; stage s on rank 0; microbatches 0 .. 1; }
  pipe second { stages 1; stage s on rank 0; microbatches 2 .. 3; }
  on rank r { F(first); B(first); F(second); B(second); }
}
// CHECK: gap: error: no pipe has microbatch 1, but `second` begins with 2 [E1019]

//--- late.pp
schedule late() {
  ranks 1;
  pipe main { stages 1; stage s on rank 0; microbatches 3 .. 4; }
  on rank r { F; B; }
}
// CHECK: late: error: no pipe has microbatch 0, but `main` begins with 3 [E1019]
