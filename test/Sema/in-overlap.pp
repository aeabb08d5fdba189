// A group holds actions, perhaps under let, if, loops and calls; a block that holds more cannot stand in it.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

block pair() { F; B; }
block phased() { if true { phase x { F; } } }
block indirect() { phased(); }
schedule s() {
  ranks 1; microbatches 1; placement linear;
  on rank r {
    overlap {
      let x = 1;
      if x == 1 { repeat 1 { pair(); } }
      // CHECK:      in-overlap.pp:[[#@LINE+4]]:7: error: `phase` is not allowed in `overlap` [E0316]
      // CHECK-NEXT:   [[#@LINE+3]] |       phase y { F; }
      // CHECK-NEXT:     |       ^~~~~
      // CHECK-NEXT: note: a group holds actions, and `let`, `if`, `for`, `repeat` and `while` around them
      phase y { F; }
      // CHECK:      in-overlap.pp:[[#@LINE+1]]:7: error: `overlap` is not allowed in `overlap` [E0316]
      overlap { F; }
      // CHECK:      in-overlap.pp:[[#@LINE+1]]:7: error: `defer` is not allowed in `overlap` [E0316]
      defer W { B; }
      // CHECK:      in-overlap.pp:[[#@LINE+1]]:7: error: `drain` is not allowed in `overlap` [E0316]
      drain W;
      // CHECK:      in-overlap.pp:[[#@LINE+2]]:7: error: `phased` is not allowed in `overlap` [E0316]
      // CHECK:      in-overlap.pp:[[#@LINE-20]]:28: note: because of this statement of the block
      phased();
      // CHECK:      in-overlap.pp:[[#@LINE+2]]:7: error: `indirect` is not allowed in `overlap` [E0316]
      // CHECK:      in-overlap.pp:[[#@LINE-23]]:28: note: because of this statement of the block
      indirect();
    }
  }
}
