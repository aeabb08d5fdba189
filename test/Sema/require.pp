// What a schedule requires, with the values that broke it.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: ppcc %s -D P=4 -D M=8 -D fast=true --emit=actions | FileCheck %s --check-prefix=FINE
// FINE: rank 3: {{.*}}3F7

fn even(x) = x % 2 == 0;
schedule s(P: int = 3, M: int = 2, fast: bool = false, ratio: float = 0.5) {
  let half = P / 2;
  // CHECK:      require.pp:[[#@LINE+5]]:11: error: the pipeline is folded: P must be even [E0404]
  // CHECK-NEXT:   [[#@LINE+4]] |   require even(P) and M >= 2 * half, "the pipeline is folded: P must be even";
  // CHECK-NEXT:     |           ^~~~~~~~~~~~~~~~~~~~~~~~~
  // CHECK-NEXT: note: `even(P) and M >= 2 * half` is false with P = 3, M = 2, half = 1
  // CHECK-NEXT: note: choose other values with `-D NAME=VALUE`
  require even(P) and M >= 2 * half, "the pipeline is folded: P must be even";
  // CHECK:      require.pp:[[#@LINE+2]]:11: error: `fast or ratio > 0.75` does not hold [E0404]
  // CHECK:      note: `fast or ratio > 0.75` is false with fast = false, ratio = 0.5
  require fast or ratio > 0.75;
  // CHECK:      require.pp:[[#@LINE+2]]:11: error: `M > 2` does not hold [E0404]
  // CHECK:      note: `M > 2` is false with M = 2
  require M > 2;
  require 2 > 1;
  ranks P; microbatches M; placement linear;
  on rank r { repeat M { F; } repeat M { B; } }
}
