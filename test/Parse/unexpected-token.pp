// A keyword where a name belongs, and a name that is nearly a keyword, get a note.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  ranks 1; microbatches 1; placement linear;
  on rank r {
    // CHECK:      unexpected-token.pp:[[#@LINE+5]]:9: error: unexpected `repeat`, expected a name [E0204]
    // CHECK-NEXT:   [[#@LINE+4]] |     let repeat = 3;
    // CHECK-NEXT:     |         ^~~~~~
    // CHECK-NEXT: note: `repeat` is a keyword and cannot be a name
    // CHECK-NEXT: note: see docs/language.md for the form of each construct
    let repeat = 3;
    // CHECK:      unexpected-token.pp:[[#@LINE+4]]:11: error: unexpected `2`, expected `;` or `(` [E0204]
    // CHECK:      unexpected-token.pp:[[#@LINE+3]]:5: note: did you mean `repeat`?
    // CHECK-NEXT:   [[#@LINE+2]] |     repat 2 { F; }
    // CHECK-NEXT:     |     ^~~~~
    repat 2 { F; }
    // CHECK:      unexpected-token.pp:[[#@LINE+1]]:17: error: unexpected `*`, expected an expression [E0204]
    let x = 2 * * 3;
    B;
  }
}
// CHECK:      unexpected-token.pp:[[#@LINE+2]]:1: error: unexpected `schedul`, expected a declaration or the end of the file [E0204]
// CHECK:      unexpected-token.pp:[[#@LINE+1]]:1: note: did you mean `schedule`?
schedul t() { }
// CHECK:      unexpected-token.pp:[[#@LINE+3]]:12: error: unexpected `{`, expected `(` [E0204]
// CHECK-NEXT: {{schedule u}}
// CHECK:      note: parameters stand in parentheses, and `()` where there are none
schedule u { ranks 1; }
// CHECK:      unexpected-token.pp:[[#@LINE+3]]:9: error: unexpected `block`, expected {{.*}} [E0204]
// CHECK:      note: `block` is a keyword and cannot be a name
// CHECK-NOT:  did you mean
model m(block: int = 2, slices: int = 1) { cost F = block; }
// CHECK:      unexpected-token.pp:[[#@LINE+2]]:19: error: unexpected `slices`, expected {{.*}} [E0204]
// CHECK:      note: `slices` is a keyword and cannot be a name
cluster c(a: int, slices: int = 1) { latency = a; }
