// The command line has the last word on the order of communication, then the schedule, then the default.
// RUN: ppcc %s --emit=actions | FileCheck %s
// RUN: ppcc %s --emit=actions --comm-order=sweep | FileCheck %s --check-prefix=SWEEP
// RUN: ppcc %s --emit=actions --passes=verify,inject-comm --comm-order=sweep | FileCheck %s --check-prefix=SWEEP
// RUN: ppcc %s --emit=actions --passes=verify | FileCheck %s

schedule s() {
  ranks 2; microbatches 1; placement linear;
  cluster { transport stream-per-edge, stream-per-peer, buffered:2, rendezvous; } comm { order none; fuse none; prefetch 2; }
  // CHECK: rank 0: 0F0 0B0
  // SWEEP: rank 0: 0F0 0SEND_F0 0RECV_B0 0B0
  on rank r { F; B; }
}
