// Two encoders that feed one language model: stages 0 and 1 see images, stage 2 sound, stages 3 and 4 read both.
// RUN: ppcc %s --comm-order=sweep --emit=actions | FileCheck %s --match-full-lines
// RUN: ppcc %s --emit=report | FileCheck %s --check-prefix=REPORT
// RUN: ppcc %s -o %t.json && ppcc-run %t.json | FileCheck %s --check-prefix=GRADIENTS
// RUN: ppcc %s --emit=cpp -o %t.cpp && %cxx -O0 -shared -fPIC %t.cpp -o %t.so
// RUN: ppcc-run %t.so:ppcc_two_encoders | FileCheck %s --check-prefix=GRADIENTS
// RUN: ppcc %s --emit=svg | grep -c '<svg'
// RUN: grep -q '"gaps": .1.[}]' %t.json && grep -q '^"version": 3,' %t.json

// CHECK:      rank 0: 0F0 1F0 1SEND_F0>3 0F1 1F1 1SEND_F1>3 1RECV_B0<3 1B0 0B0 1RECV_B1<3 1B1 0B1
// CHECK-NEXT: rank 1: 2F0 2SEND_F0 2F1 2SEND_F1 2RECV_B0 2B0 2RECV_B1 2B1
// CHECK-NEXT: rank 2: 3RECV_F0 3RECV_F0<1 3RECV_F1 3F0 4F0 3RECV_F1<1 4B0 3B0 3SEND_B0>1 3SEND_B0 3F1 4F1 4B1 3B1 3SEND_B1>1 3SEND_B1
// The encoders do not wait for each other: 2 forwards, the decoder's 6 + 6, 4 behind it.
// REPORT: makespan 18
// GRADIENTS: 1 programs, 10 layers exact, 0 in another order, 0 failed
schedule two_encoders(M: int = 2) {
  ranks 3;
  microbatches M;
  stages 5;
  stage s on rank s / 2 + (s == 2 ? 0 : s == 3 ? 1 : 0);
  no edge stage 1 -> stage 2;
  edge stage 1 -> stage 3;
  on rank r {
    if r == 0      { repeat M { F(0); F(1); } repeat M { B(1); B(0); } }
    else if r == 1 { repeat M { F; }          repeat M { B; } }
    else           { repeat M { F(0); F(1); B(1); B(0); } }
  }
}
