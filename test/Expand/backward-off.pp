// In a forward-only program what the order says of backwards is left out.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s --match-full-lines
// CHECK:      rank 0: 0F0 0F1 0F2
// CHECK-NEXT: rank 1: 1F0 1F1 1F2

schedule s(P: int = 2, M: int = 3) {
  ranks P; microbatches M; placement linear;
  backward when false;
  on rank r {
    defer W lag 1 { while issued(B) < M { if issued(F) < M { overlap { F; } } B; } }
    drain W;
  }
}
