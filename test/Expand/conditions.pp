// if, else if and else; and, or and ?: look at their right side only when it counts.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s

schedule s() {
  ranks 4; microbatches 1; placement linear;
  on rank r {
    // CHECK:      rank 0: 0F0 0B0
    // CHECK-NEXT: rank 1: 1F0 1I0 1W0
    // CHECK-NEXT: rank 2: 2F0 2B0
    // CHECK-NEXT: rank 3: 3F0 3B0
    if r == 0 { F; B; }
    else if r == 1 { F; I; W; }
    else if r != 0 and 6 / r == 3 or r == 2 or 1 / (r - 2) > 1 { F; B; }
    else { F; repeat r > 2 ? 1 : 1 / 0 { B; } }
  }
}
