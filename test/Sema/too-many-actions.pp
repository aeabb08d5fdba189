// More actions than the limit are refused before any is laid out, whatever the number.
// RUN: not ppcc %s -D M=1000000000000 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: not ppcc %s -D M=9223372036854775807 2>&1 | FileCheck %s --check-prefix=MOST
// RUN: not ppcc %s -D M=10 --max-actions=39 2>&1 | FileCheck %s --check-prefix=LOW
// RUN: ppcc %s -D M=10 --max-actions=40 --emit=actions | FileCheck %s --check-prefix=FINE
// RUN: not ppcc %s -D n=1000000000000 2>&1 | FileCheck %s --check-prefix=PAD
// RUN: not ppcc %s -D n=4000000000 2>&1 | FileCheck %s --check-prefix=PAD

schedule s(M: int = 1, n: int = M) {
  ranks 2; placement linear;
  // CHECK:      too-many-actions.pp:[[#@LINE+8]]:16: error: the schedule has 4000000000000 actions, more than the limit of 10000000 [E0412]
  // CHECK-NEXT:   [[#@LINE+7]] |   microbatches M pad max(n, M);
  // CHECK-NEXT:      |                ^
  // CHECK-NEXT: note: `--max-actions=N` raises the limit; an action takes 16 bytes
  // MOST: error: the schedule has 9223372036854775807 actions, more than the limit of 10000000 [E0412]
  // LOW: error: the schedule has 40 actions, more than the limit of 39 [E0412]
  // FINE: rank 0: 0F0
  // PAD: error: the schedule has {{16000000000|4000000000000}} actions, more than the limit of 10000000 [E0412]
  microbatches M pad max(n, M);
  on rank r { repeat M { F; } repeat M { B; } }
}
