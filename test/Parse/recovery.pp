// One run reports the syntax errors of several statements, and nothing that follows from them.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK: recovery.pp:[[#@LINE+1]]:15: error: unexpected `)`, expected an expression [E0204]
fn f(x) = (x +);
block b() {
  // CHECK: recovery.pp:[[#@LINE+1]]:10: error: unexpected `{`, expected an expression [E0204]
  repeat { F; }
  // CHECK: recovery.pp:[[#@LINE+1]]:12: error: unexpected `..`, expected an expression [E0204]
  for i in .. 3 { F; B; }
}
schedule s(P: int = 2) {
  // CHECK: recovery.pp:[[#@LINE+1]]:9: error: unexpected `;`, expected an expression [E0204]
  ranks ;
  microbatches P;
  placement linear;
  on rank r {
    // CHECK:      recovery.pp:[[#@LINE+4]]:10: error: unexpected `=`, expected `{` [E0204]
    // CHECK-NEXT:   [[#@LINE+3]] |     if r = 0 { F; } else { B; }
    // CHECK-NEXT:      |          ^
    // CHECK-NEXT: note: `=` assigns; `==` compares
    if r = 0 { F; } else { B; }
    // CHECK: recovery.pp:[[#@LINE+1]]:9: error: unexpected `:`, expected {{.*}} [E0204]
    F(0 : 1);
    B;
  }
}
