// Each chunk has so many microbatches; a named one must exist.
// RUN: not ppcc %s:s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  ranks 3; microbatches 2; placement linear;
  on rank r {
    // CHECK:      microbatch-errors.pp:[[#@LINE+5]]:28: error: no microbatch is left for `F`: all 2 of stage 0 have run it [E0504]
    // CHECK-NEXT:   [[#@LINE+4]] |     if r == 0 { repeat 3 { F; } }
    // CHECK-NEXT:     |                            ^
    // CHECK-NEXT: note: on rank 0
    // CHECK-NEXT: note: count the actions of this chunk: each microbatch has one F, and one B or one I with its W
    if r == 0 { repeat 3 { F; } }
    // CHECK:      microbatch-errors.pp:[[#@LINE+2]]:36: error: no microbatch is left for `B`: all 2 of stage 1 have run it [E0504]
    // CHECK:      note: on rank 1
    if r == 1 { F; F; B; B(mb: 1); B; }
    // CHECK:      microbatch-errors.pp:[[#@LINE+5]]:17: error: microbatch 2 of stage 2 does not exist: its pipe has 0..2 [E0505]
    // CHECK-NEXT:   [[#@LINE+4]] |     if r == 2 { F(mb: 2); F(mb: -1); }
    // CHECK-NEXT:     |                 ^~~~~~~~
    // CHECK-NEXT: note: on rank 2
    // CHECK-NEXT: note: microbatches count from 0; the end of a range is excluded
    if r == 2 { F(mb: 2); F(mb: -1); }
  }
}
schedule pipes() {
  ranks 1;
  pipe down { placement linear; microbatches 0 .. 2; }
  pipe up { placement linear; microbatches 2 .. 4; }
  on rank r { F(up, mb: 1); }
}
// RUN: not ppcc %s:pipes 2>&1 | FileCheck %s --check-prefix=PIPES
// PIPES: microbatch-errors.pp:[[#@LINE-3]]:15: error: microbatch 1 of stage 0 does not exist: its pipe has 2..4 [E0505]
