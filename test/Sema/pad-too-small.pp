// Padding does not take microbatches away.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s(M: int = 4) {
  ranks 1; placement linear;
  // CHECK:      pad-too-small.pp:[[#@LINE+4]]:22: error: `pad` gives 3 microbatches, fewer than the 4 that there are [E0408]
  // CHECK-NEXT:   [[#@LINE+3]] |   microbatches M pad M - 1;
  // CHECK-NEXT:     |                      ^~~~~
  // CHECK-NEXT: note: `pad` takes at least the number of microbatches: `pad max(n, M)`
  microbatches M pad M - 1;
  on rank r { F; B; }
}
