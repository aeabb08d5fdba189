// A name is defined once in its scope.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

fn f(x) = x;
// CHECK:      redefined.pp:[[#@LINE+7]]:4: error: `f` is defined twice [E0308]
// CHECK-NEXT:   [[#@LINE+6]] | fn f(y) = y;
// CHECK-NEXT:     |    ^
// CHECK-NEXT: redefined.pp:[[#@LINE-4]]:4: note: first defined here
// CHECK-NEXT:   [[#@LINE-5]] | fn f(x) = x;
// CHECK-NEXT:     |    ^
// CHECK-NEXT: note: give one of them another name; `let` binds once
fn f(y) = y;
block f() { F; }
// CHECK:      redefined.pp:[[#@LINE+2]]:7: error: `f` is defined twice [E0308]
// CHECK:      redefined.pp:[[#@LINE-2]]:7: note: first defined here
block f() { B; }
// CHECK:      redefined.pp:[[#@LINE+2]]:24: error: `P` is defined twice [E0308]
// CHECK:      redefined.pp:[[#@LINE+1]]:12: note: first defined here
schedule s(P: int = 1, P: int = 2) {
  // CHECK:      redefined.pp:[[#@LINE+2]]:7: error: `P` is defined twice [E0308]
  // CHECK:      redefined.pp:[[#@LINE-2]]:12: note: first defined here
  let P = 3;
  ranks 1;
  pipe down { placement linear; microbatches 0 .. 1; }
  // CHECK:      redefined.pp:[[#@LINE+2]]:8: error: `down` is defined twice [E0308]
  // CHECK:      redefined.pp:[[#@LINE-2]]:8: note: first defined here
  pipe down { placement linear; microbatches 1 .. 2; }
  // CHECK:      redefined.pp:[[#@LINE+2]]:11: error: `x` is defined twice [E0308]
  // CHECK:      redefined.pp:[[#@LINE+1]]:8: note: first defined here
  fn g(x, x) = x;
  on rank r {
    let r = 1;
    let w = 1;
    // CHECK:      redefined.pp:[[#@LINE+2]]:9: error: `w` is defined twice [E0308]
    // CHECK:      redefined.pp:[[#@LINE-2]]:9: note: first defined here
    let w = 2;
    for w in 0 .. 1 { let w = 3; }
  }
}
// CHECK:      redefined.pp:[[#@LINE+2]]:10: error: `s` is defined twice [E0308]
// CHECK:      redefined.pp:[[#@LINE-22]]:10: note: first defined here
schedule s() {
  ranks 1; microbatches 1; placement linear;
  on rank r { F; B; }
}
