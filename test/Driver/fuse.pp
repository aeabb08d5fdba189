// Fusion, from the schedule and from the command line, which has the last word.
// RUN: ppcc %s --emit=actions | FileCheck %s --check-prefix=RING
// RUN: ppcc %s --emit=json | FileCheck %s --check-prefix=JSON
// RUN: ppcc %s --emit=actions --fuse=none --comm-order=late --transport=buffered | FileCheck %s --check-prefix=NONE
// RUN: ppcc %s --emit=actions --comm-order=none | FileCheck %s --check-prefix=SILENT
// RUN: ppcc %s --emit=actions --fuse=batch --comm-order=late | FileCheck %s --check-prefix=BATCH
// RUN: not ppcc %s --fuse=megatron --comm-order=late 2>&1 | FileCheck %s --check-prefix=USAGE
// RUN: not ppcc %s --fuse=batch --passes=verify 2>&1 | FileCheck %s --check-prefix=PASSES
// RUN: not ppcc %s --fuse=megatorn 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: sed 's/calls ring/calls rings; order late/' %s > %t.pp
// RUN: not ppcc %t.pp 2>&1 | FileCheck %s --check-prefix=SETTING
// RUN: sed 's/calls ring/calls ring; order late/' %s > %t.pp
// RUN: not ppcc %t.pp 2>&1 | FileCheck %s --check-prefix=ORDER

schedule s() {
  ranks 2; microbatches 2; placement linear;
  comm { fuse megatron; calls ring; }
  on rank r { phase warmup { repeat 1 - r { F; } } phase steady { repeat 1 + r { F; B; } } repeat 1 - r { B; } }
}
// RING:      rank 0: 0F0 send_forward_backward_recv_forward_backward[0SEND_F0;0RECV_B0] 0F1 0B0
// RING-NEXT: rank 1: recv_forward[1RECV_F0] 1F0 1B0
// JSON: "calls": "ring",
// NONE: rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0
// SILENT: rank 0: 0F0 0F1 0B0 0B1
// BATCH: rank 0: 0F0 0SEND_F0 0F1 send_forward_recv_backward[0SEND_F1;0RECV_B0] 0B0
// USAGE: ppcc: error: --comm-order and --fuse=megatron exclude each other: that fusion places the messages itself
// PASSES: ppcc: error: --fuse is for fuse-comm, which --passes does not name
// NAME: ppcc: error: --fuse: invalid value `megatorn`; expected one of none, batch, megatron, megatron-even-odd; did you mean `megatron`?
// SETTING: error: `calls` does not take `rings`; did you mean `ring`? [E0325]
// ORDER:      fuse.pp.tmp.pp:17:15: error: `fuse megatron` places the messages itself, and `order` would place them again [E0841]
// ORDER:      fuse.pp.tmp.pp:17:43: note: the order is here
// ORDER:      note: remove one of the two
