// The bound of receives ahead of their readers: the command line's, else the schedule's, else none.
// RUN: ppcc %s --emit=actions | FileCheck %s --check-prefix=TWO
// RUN: ppcc %s --emit=actions --prefetch=1 | FileCheck %s --check-prefix=ONE
// RUN: sed 's/prefetch 2;//' %s > %t.free.pp
// RUN: ppcc %t.free.pp --emit=actions | FileCheck %s --check-prefix=FREE
// RUN: ppcc %t.free.pp --emit=actions --prefetch=3 | FileCheck %s --check-prefix=FREE
// RUN: ppcc %s --check --time-passes 2>&1 | FileCheck %s --check-prefix=PASSES
// RUN: ppcc %t.free.pp --check --time-passes 2>&1 | FileCheck %s --check-prefix=PASSES-FREE
// RUN: not ppcc %s --prefetch=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not ppcc %s --prefetch=1 --passes=verify 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: sed 's/prefetch 2/prefetch 0/' %s > %t.zero.pp
// RUN: not ppcc %t.zero.pp 2>&1 | FileCheck %s --check-prefix=SETTING

// FREE:      rank 0: 0F0 0SEND_F0 2RECV_F0 0F1 0SEND_F1 2RECV_F1 0F2 0SEND_F2 2RECV_F2 2F0
// TWO:       rank 0: 0F0 0SEND_F0 2RECV_F0 0F1 0SEND_F1 2RECV_F1 0F2 0SEND_F2 2F0
// ONE:       rank 0: 0F0 0SEND_F0 2RECV_F0 0F1 0SEND_F1 0F2 0SEND_F2 2F0

// The buffers that a program needs, each rank's and each edge's: kind, pipe, stage, peer, buffers.
// RUN: ppcc %t.free.pp | FileCheck %s --check-prefix=FREE-BUFFERS
// RUN: ppcc %s | FileCheck %s --check-prefix=BUFFERS
// FREE-BUFFERS:      "buffers": [3,1],
// FREE-BUFFERS-NEXT: "peak_activations":
// FREE-BUFFERS-NEXT: "edge_buffers": {{\[\[}}5,0,1,0,1], [5,0,2,1,3], [5,0,3,2,1]],
// BUFFERS:           "buffers": [2,1],
// BUFFERS-NEXT:      "peak_activations":
// BUFFERS-NEXT:      "edge_buffers": {{\[\[}}5,0,1,0,1], [5,0,2,1,2], [5,0,3,2,1]],

// A program from elsewhere is judged by the bound.
// RUN: ppcc %t.free.pp > %t.json
// RUN: ppcc --check %t.json
// RUN: ppcc --check %t.json --prefetch=3
// RUN: not ppcc --check %t.json --prefetch=2 2>&1 | FileCheck %s --check-prefix=JUDGED
// JUDGED: error: `2RECV_F2` is posted too early: at most 2 receives from stage 1 may be outstanding [E0771]

// PASSES:           verify-transport
// PASSES-NEXT:      verify-buffers
// PASSES-FREE:      verify-transport
// PASSES-FREE-NEXT: preconnect

// ZERO: ppcc: error: --prefetch: Value 0 not in range 1 to 4294967295
// BOTH: ppcc: error: --prefetch is for inject-comm or verify-buffers, which --passes does not name
// SETTING: error: `prefetch` does not take `0`; it takes a number of at least 1 [E0325]

schedule breadth_first() {
  ranks 2;
  microbatches 3;
  placement loop(2);
  backward when false;
  comm { order sweep; prefetch 2; }
  on rank r { repeat 3 { F(0); } repeat 3 { F(1); } }
}
