// A name of an inner scope hides the outer one to the end of its braces, and says so; parameters hide silently.
// RUN: ppcc %s --emit=actions 2>&1 | FileCheck %s --implicit-check-not=warning:

fn n() = 1;
schedule s(M: int = 3) {
  ranks 1; microbatches M; placement linear;
  let n = 2;
  fn twice(M) = 2 * M;
  on rank r {
    // CHECK:      shadowed-name.pp:[[#@LINE+7]]:20: warning: `n` shadows another `n` [E0327]
    // CHECK-NEXT:   [[#@LINE+6]] |     repeat n { let n = 1; repeat n { F; } }
    // CHECK-NEXT:     |                    ^
    // CHECK-NEXT: shadowed-name.pp:[[#@LINE-6]]:7: note: the other one is here
    // CHECK-NEXT:   [[#@LINE-7]] |   let n = 2;
    // CHECK-NEXT:     |       ^
    // CHECK-NEXT: note: choose another name; a name is in scope up to the end of the enclosing braces
    repeat n { let n = 1; repeat n { F; } }
    // CHECK:      shadowed-name.pp:[[#@LINE+2]]:9: warning: `n` shadows another `n` [E0327]
    // CHECK:      shadowed-name.pp:[[#@LINE-12]]:7: note: the other one is here
    for n in 0 .. 1 { repeat n + 1 { F; } }
    repeat n() + 1 { B; }
    repeat twice(n) - 3 { B; }
  }
}
// CHECK: rank 0: 0F0 0F1 0F2 0B0 0B1 0B2
