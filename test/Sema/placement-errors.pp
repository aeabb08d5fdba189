// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK: placement-errors.pp:[[#@LINE+1]]:11: error: placement `half` has no `stage s on rank ...` [E0318]
placement half { stages ranks; }
// CHECK: placement-errors.pp:[[#@LINE+2]]:37: error: a second `stages` [E0317]
// CHECK: placement-errors.pp:[[#@LINE+1]]:11: error: placement `twice` has no `stage s on rank ...` [E0318]
placement twice(n: int) { stages n; stages n; }
placement own { stages ranks; stage s on rank s; }
// CHECK: placement-errors.pp:[[#@LINE+1]]:11: error: `own` is defined twice [E0308]
placement own { stages ranks; stage s on rank s; }

schedule s() {

  ranks 2; microbatches 1;
  placement own;
  on rank r { F; B; }
}
