// What is per rank is inserted once, after the last of its anchors, whichever their stages.
// RUN: ppcc %s --emit=actions | FileCheck %s --match-full-lines
action STEP { per rank; after B; }
schedule s() {
  ranks 2; microbatches 2; placement loop(2);
  insert STEP after B;
  on rank r {
    repeat 2 { F(0); }
    repeat 2 { F(1); }
    repeat 2 { B(1); }
    repeat 2 { B(0); }
  }
}
// CHECK:      rank 0: {{.*}} 2B0 2SEND_B0 2B1 2SEND_B1 0RECV_B0 0RECV_B1 0B0 0B1 STEP
// CHECK-NEXT: rank 1: {{.*}} 3B0 3SEND_B0 3B1 3SEND_B1 1RECV_B0 1RECV_B1 1B0 1SEND_B0 1B1 1SEND_B1 STEP
