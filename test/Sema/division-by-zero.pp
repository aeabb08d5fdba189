// Division by zero, of ints and of floats, in the head and on a rank.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK:      division-by-zero.pp:[[#@LINE+8]]:20: error: division by zero in `/` [E0407]
// CHECK-NEXT:   [[#@LINE+7]] | fn share(x, y) = x / y;
// CHECK-NEXT:     |                    ^
// CHECK-NEXT: division-by-zero.pp:[[#@LINE+9]]:12: note: in the call of `share` here
// CHECK-NEXT:   [[#@LINE+8]] |     repeat share(2, P - 1 - r) { F; }
// CHECK-NEXT:     |            ^~~~~~~~~~~~~~~~~~~
// CHECK-NEXT: note: in the body of rank 1
// CHECK-NEXT: note: guard the division with `if`, `?:` or `require`
fn share(x, y) = x / y;
schedule s(P: int = 2, f: float = 0) {
  ranks P; microbatches 2; placement linear;
  on rank r {
    repeat share(2, P - 1 - r) { F; }
    B; B;
  }
}
// RUN: not ppcc %s -D P=1 2>&1 | FileCheck %s --check-prefix=FIRST
// FIRST: division-by-zero.pp:[[#@LINE-9]]:20: error: division by zero in `/` [E0407]
