// A program is one step of training: see docs/decisions/0016-two-buffered-weights.md.
// RUN: not ppcc %s 2>&1 | FileCheck %s
import "std.pp";
schedule two(M: int = 4) {
  ranks 2; microbatches M; placement linear;
  // CHECK-DAG: error: `STEP` runs twice [E0702]
  // CHECK-DAG: note: a program is one training step, in which
  // CHECK-DAG: error: `STEP` runs before `0B3`, on which it depends [E0721]
  on rank r { repeat M / 2 { F; B; } STEP; repeat M / 2 { F; B; } STEP; }
}
