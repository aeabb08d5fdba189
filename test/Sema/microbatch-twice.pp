// The microbatches of pipes do not overlap.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  ranks 1;
  pipe down { placement linear; microbatches 0 .. 4; }
  // CHECK:      microbatch-twice.pp:[[#@LINE+4]]:8: error: pipes `down` and `up` both have microbatch 3 [E0411]
  // CHECK-NEXT:   [[#@LINE+3]] |   pipe up { placement linear; microbatches 3 .. 6; }
  // CHECK-NEXT:     |        ^~
  // CHECK-NEXT: note: pipes share one numbering; give each its own range, such as `microbatches M / 2 .. M;`
  pipe up { placement linear; microbatches 3 .. 6; }
  on rank r { }
}
