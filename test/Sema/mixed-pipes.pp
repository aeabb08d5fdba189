// Beside pipes there is no placement of the schedule itself.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  ranks 1;
  // CHECK:      mixed-pipes.pp:[[#@LINE+7]]:3: error: stages, placement, microbatches and edges cannot be combined with `pipe` [E0319]
  // CHECK-NEXT:   [[#@LINE+6]] |   microbatches 2;
  // CHECK-NEXT:     |   ^~~~~~~~~~~~
  // CHECK-NEXT: mixed-pipes.pp:[[#@LINE+5]]:8: note: the pipe is here
  // CHECK-NEXT:   [[#@LINE+4]] |   pipe p { placement linear; microbatches 0 .. 1; }
  // CHECK-NEXT:     |        ^
  // CHECK-NEXT: note: in a schedule with several pipes, each pipe has its own stages, placement, microbatches and edges
  microbatches 2;
  pipe p { placement linear; microbatches 0 .. 1; }
  on rank r { F; B; }
}
