// A `let` that nothing uses is a warning, in the head, on ranks and in blocks; not where an error stands.
// RUN: ppcc %s --emit=actions 2>&1 | FileCheck %s --implicit-check-not=warning:

block b(unused) { let used = 1; repeat used { F; } }
schedule s(unused: int = 1) {
  ranks 1; microbatches 1; placement linear;
  // CHECK:      unused-let.pp:[[#@LINE+4]]:7: warning: `w` is never used [E0328]
  // CHECK-NEXT:   [[#@LINE+3]] |   let w = 1;
  // CHECK-NEXT:     |       ^
  // CHECK-NEXT: note: remove it
  let w = 1;
  let in_function = 1;
  fn f() = in_function;
  // CHECK:      unused-let.pp:[[#@LINE+1]]:23: warning: `x` is never used [E0328]
  block inner() { let x = 1; repeat f() { B; } }
  on rank r {
    b(1);
    inner();
    // CHECK:      unused-let.pp:[[#@LINE+1]]:27: warning: `r` shadows another `r` [E0327]
    for i in 0 .. 0 { let r = 2; repeat r { } }
  }
}
// CHECK: rank 0: 0F0 0B0
