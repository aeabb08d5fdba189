// One line a rank, a group as one cell.
// RUN: ppcc %s --comm-order=sweep --emit=actions | FileCheck %s --match-full-lines --strict-whitespace
// RUN: ppcc %s --emit=actions --comm-order=none | FileCheck %s --check-prefix=NONE --match-full-lines --strict-whitespace
schedule groups() {
  ranks 2;
  microbatches 2;
  placement linear;
  on rank r {
    if r == 0 { F; F; B; B; } else { F; overlap { F; B; } B; }
  }
}
//      CHECK:rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1
// CHECK-NEXT:rank 1: 1RECV_F0 1F0 1RECV_F1 (1F1;1B0)OVERLAP_F_B 1SEND_B0 1B1 1SEND_B1
//  CHECK-NOT:{{.}}
//      NONE:rank 0: 0F0 0F1 0B0 0B1
// NONE-NEXT:rank 1: 1F0 (1F1;1B0)OVERLAP_F_B 1B1
//  NONE-NOT:{{.}}
