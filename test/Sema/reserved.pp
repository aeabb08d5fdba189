// What is built in belongs to the language: actions among statements, counters and functions in expressions.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK:      reserved.pp:[[#@LINE+4]]:4: error: `min` is built in and cannot be redefined [E0309]
// CHECK-NEXT:   [[#@LINE+3]] | fn min(x) = x;
// CHECK-NEXT:     |    ^~~
// CHECK-NEXT: note: choose another name
fn min(x) = x;
// CHECK:      reserved.pp:[[#@LINE+1]]:7: error: `B` is an action and cannot be redefined [E0309]
block B() { F; }
// A function is no value.
schedule s(max: int = 1) {
  // CHECK:      reserved.pp:[[#@LINE+1]]:7: error: `padded` is built in and cannot be redefined [E0309]
  let padded = 1;
  ranks 1; microbatches 1; placement linear;
  // CHECK:      reserved.pp:[[#@LINE+1]]:9: error: `SEND_B` is an action and cannot be redefined [E0309]
  block SEND_B() { F; }
  // CHECK:      reserved.pp:[[#@LINE+1]]:11: error: `pending` is built in and cannot be redefined [E0309]
  on rank pending { F; }
}
