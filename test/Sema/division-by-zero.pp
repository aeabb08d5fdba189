// Division by zero, of ints and of floats, in the head and on a rank.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK:      division-by-zero.pp:[[#@LINE+7]]:20: error: `/` by zero [E0407]
// CHECK-NEXT:   [[#@LINE+6]] | fn share(x, y) = x / y;
// CHECK-NEXT:     |                    ^
// CHECK-NEXT: division-by-zero.pp:[[#@LINE+8]]:13: note: in the call of `share` here
// CHECK-NEXT:   [[#@LINE+7]] |     let w = share(4, P - 1 - r);
// CHECK-NEXT:     |             ^~~~~~~~~~~~~~~~~~~
// CHECK-NEXT: note: guard the division with `if`, `?:` or `require`
fn share(x, y) = x / y;
schedule s(P: int = 2, f: float = 0) {
  ranks P; microbatches 2; placement linear;
  on rank r {
    let w = share(4, P - 1 - r);
    let never = 0;
    F; B;
  }
}
// RUN: not ppcc %s -D P=1 2>&1 | FileCheck %s --check-prefix=FIRST
// FIRST: division-by-zero.pp:[[#@LINE-10]]:20: error: `/` by zero [E0407]
