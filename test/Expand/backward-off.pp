// In a forward-only program there is F alone.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: ppcc %s -D train=true --check

schedule s(train: bool = false) {
  ranks 1; microbatches 2; placement linear;
  backward when train;
  // CHECK:      backward-off.pp:[[#@LINE+4]]:21: error: `B` in a forward-only program [E0510]
  // CHECK-NEXT:   [[#@LINE+3]] |   on rank r { F; F; B; I; W; }
  // CHECK-NEXT:     |                     ^
  // CHECK-NEXT: note: guard it with the condition of `backward when`
  on rank r { F; F; B; I; W; }
}
