// Both ends keep one order of messages under a bound of receives, too; a bound that this breaks is named as what is broken.
// RUN: ppcc %s --comm-order=late --prefetch=2 --transport=buffered --emit=actions | FileCheck %s
// CHECK: rank 0: {{.*}} 0SEND_F1 3RECV_F1 3RECV_F0 3F0 3F1
// RUN: not ppcc %s --comm-order=late --prefetch=1 --transport=buffered --check 2>&1 | FileCheck %s --check-prefix=BOUND
// BOUND: error: `3RECV_F0` is posted too early: at most 1 receives from stage 2 may be outstanding [E0771]
// RUN: ppcc zero_bubble_v -D P=2 -D M=4 --comm-order=late --prefetch=1 --transport=buffered --check
schedule l() {
  ranks 2; microbatches 2; placement v;
  on rank 0 { F(0); F(0); F(1); F(1); B(1); B(1); B(0); B(0); }
  on rank 1 { F(0); F(0); F(1, mb: 1); F(1, mb: 0); B(1); B(0); B(1); B(0); }
}
