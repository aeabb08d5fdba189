// Padding does not take microbatches away.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s(M: int = 4) {
  ranks 1; placement linear;
  // CHECK:      pad-too-small.pp:[[#@LINE+4]]:22: error: the padded number of microbatches, 3, is less than the real one, 4 [E0408]
  // CHECK-NEXT:   [[#@LINE+3]] |   microbatches M pad M - 1;
  // CHECK-NEXT:     |                      ^~~~~
  // CHECK-NEXT: note: `pad` takes at least as many microbatches as there are: `pad max(n, M)`
  microbatches M pad M - 1;
  on rank r { F; B; }
}
