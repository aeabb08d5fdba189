// Ranks, microbatches, a placement and the body are what a schedule must have.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK:      missing-items.pp:[[#@LINE+11]]:10: error: schedule `nothing` has no `microbatches` [E0318]
// CHECK-NEXT:   [[#@LINE+10]] | schedule nothing() { }
// CHECK-NEXT:     |          ^~~~~~~
// CHECK-NEXT: note: `microbatches M;` gives their number
// CHECK-NEXT: note: docs/language.md shows the parts of a schedule
// CHECK:      missing-items.pp:[[#@LINE+6]]:10: error: schedule `nothing` has no `placement`, or `stages` with `stage s on rank ...` [E0318]
// CHECK:      note: `placement linear;` gives each rank one stage, `placement loop(2);` two
// CHECK:      missing-items.pp:[[#@LINE+4]]:10: error: schedule `nothing` has no `ranks` [E0318]
// CHECK:      note: `ranks P;` gives their number
// CHECK:      missing-items.pp:[[#@LINE+2]]:10: error: schedule `nothing` has no `on rank` [E0318]
// CHECK:      note: `on rank r { ... }` holds the actions of each rank
schedule nothing() { }
// CHECK:      missing-items.pp:[[#@LINE+1]]:10: error: schedule `no_stages` has no `stages`, the number of them [E0318]
schedule no_stages() { ranks 1; microbatches 1; stage s on rank 0; on rank r { F; } }
// CHECK:      missing-items.pp:[[#@LINE+1]]:10: error: schedule `no_map` has no `placement`, or `stages` with `stage s on rank ...` [E0318]
schedule no_map() { ranks 1; microbatches 1; stages 1; on rank r { F; } }
schedule pipes() {
  ranks 1;
  // CHECK:      missing-items.pp:[[#@LINE+2]]:8: error: pipe `empty` has no `microbatches` [E0318]
  // CHECK:      missing-items.pp:[[#@LINE+1]]:8: error: pipe `empty` has no `placement`, or `stages` with `stage s on rank ...` [E0318]
  pipe empty { }
  // CHECK:      missing-items.pp:[[#@LINE+1]]:8: error: pipe `half` has no `placement`, or `stages` with `stage s on rank ...` [E0318]
  pipe half { microbatches 0 .. 1; }
  on rank r { F; }
}
