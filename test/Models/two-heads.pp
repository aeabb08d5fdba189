// One trunk with two heads: both end in a loss, and stage 1 sums what they hand back.
// RUN: ppcc %s --comm-order=sweep --emit=actions | FileCheck %s --match-full-lines
// RUN: ppcc %s -o %t.json && ppcc-run %t.json | FileCheck %s --check-prefix=GRADIENTS
// RUN: ppcc %s -D training=false -o %t.json && ppcc-run %t.json | FileCheck %s --check-prefix=GRADIENTS
// RUN: ppcc %s --emit=ir | ppcc - --passes=verify --emit=ir | FileCheck %s --check-prefix=IR
// RUN: not ppcc %s --emit=torch-csv 2>&1 | FileCheck %s --check-prefix=TORCH --implicit-check-not=error:

// CHECK:      rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1
// CHECK-NEXT: rank 1: 1RECV_F0 1F0 1SEND_F0 1SEND_F0>3 1RECV_F1 1F1 1SEND_F1 1SEND_F1>3 1RECV_B0 1RECV_B0<3 1B0 1SEND_B0 1RECV_B1 1RECV_B1<3 1B1 1SEND_B1
// CHECK-NEXT: rank 2: 2RECV_F0 2F0 2RECV_F1 2B0 2SEND_B0 2F1 2B1 2SEND_B1
// CHECK-NEXT: rank 3: 3RECV_F0<1 3F0 3RECV_F1<1 3B0 3SEND_B0>1 3F1 3B1 3SEND_B1>1
// GRADIENTS: 1 programs, 8 layers exact, 0 in another order, 0 failed
// IR: "rank_of_stage": [0, 1, 2, 3], "skip_edges": {{.}}[1,3]], "gaps": [2]}
// TORCH: error: pipe `main` has an edge from stage 1 to stage 3 [E0902]
// TORCH: error: pipe `main` has no edge from stage 2 to stage 3 [E0902]
schedule two_heads(training: bool = true) {
  ranks 4;
  microbatches 2;
  placement linear;
  backward when training;
  no edge stage 2 -> stage 3;
  edge stage 1 -> stage 3;
  on rank r {
    if r < 2 or not training { repeat 2 { F; } if training { repeat 2 { B; } } }
    else                     { repeat 2 { F; B; } }
  }
}
