// The names of actions and of what is built in belong to the language.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK:      reserved.pp:[[#@LINE+4]]:4: error: `min` is built in and cannot be redefined [E0309]
// CHECK-NEXT:   [[#@LINE+3]] | fn min(x) = x;
// CHECK-NEXT:     |    ^~~
// CHECK-NEXT: note: choose another name
fn min(x) = x;
// CHECK:      reserved.pp:[[#@LINE+1]]:7: error: `B` is an action and cannot be redefined [E0309]
block B() { F; }
// CHECK:      reserved.pp:[[#@LINE+2]]:12: error: `F` is an action and cannot be redefined [E0309]
// CHECK:      reserved.pp:[[#@LINE+1]]:24: error: `mb` is built in and cannot be redefined [E0309]
schedule s(F: int = 1, mb: int = 1) {
  // CHECK:      reserved.pp:[[#@LINE+1]]:7: error: `padded` is built in and cannot be redefined [E0309]
  let padded = 1;
  ranks 1; microbatches 1; placement linear;
  // CHECK:      reserved.pp:[[#@LINE+2]]:11: error: `SEND_B` is an action and cannot be redefined [E0309]
  // CHECK:      reserved.pp:[[#@LINE+1]]:24: error: `W` is an action and cannot be redefined [E0309]
  on rank SEND_B { for W in 0 .. 1 { F; } }
}
