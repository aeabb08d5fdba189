// Nothing uses itself, directly or through what is declared later.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK:      recursion.pp:[[#@LINE+7]]:23: error: `f` uses itself [E0314]
// CHECK-NEXT:   [[#@LINE+6]] | fn f(x) = x < 1 ? 0 : f(x - 1);
// CHECK-NEXT:     |                       ^
// CHECK-NEXT: recursion.pp:[[#@LINE+4]]:4: note: declared here
// CHECK-NEXT:   [[#@LINE+3]] | fn f(x) = x < 1 ? 0 : f(x - 1);
// CHECK-NEXT:     |    ^
// CHECK-NEXT: note: functions and blocks cannot be recursive; write a loop
fn f(x) = x < 1 ? 0 : f(x - 1);
// CHECK:      recursion.pp:[[#@LINE+7]]:14: error: `odd` is used before it is declared [E0315]
// CHECK-NEXT:   [[#@LINE+6]] | fn even(x) = odd(x - 1);
// CHECK-NEXT:     |              ^~~
// CHECK-NEXT: recursion.pp:[[#@LINE+5]]:4: note: declared here
// CHECK-NEXT:   [[#@LINE+4]] | fn odd(x) = even(x - 1);
// CHECK-NEXT:     |    ^~~
// CHECK-NEXT: note: move the declaration up; functions and blocks cannot be recursive
fn even(x) = odd(x - 1);
fn odd(x) = even(x - 1);
// CHECK:      recursion.pp:[[#@LINE+2]]:20: error: `again` uses itself [E0314]
// CHECK:      recursion.pp:[[#@LINE+1]]:7: note: declared here
block again() { F; again(); }
schedule s() {
  ranks 1; microbatches 1; placement linear;
  // CHECK:      recursion.pp:[[#@LINE+2]]:18: error: `pong` is used before it is declared [E0315]
  // CHECK:      recursion.pp:[[#@LINE+2]]:9: note: declared here
  block ping() { pong(); }
  block pong() { ping(); }
  on rank r { F; B; }
}
