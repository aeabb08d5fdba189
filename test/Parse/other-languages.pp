// What people write who come from other languages is one message each, which says what stands for it.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK:      other-languages.pp:[[#@LINE+2]]:1: error: unexpected `def`, expected a declaration or the end of the file [E0204]
// CHECK:      note: `schedule NAME(P: int) { }` declares a schedule, `fn` a function
def warmup(P, r) { }
schedule s(P: int = 2) {
  // CHECK:      error: unexpected `=`
  // CHECK:      note: `ranks ...;` has no `=`
  ranks = P;
  microbatches P;
  placement linear;
  // CHECK:      error: unexpected `rank`
  // CHECK:      note: `ranks P;` is their number; `on rank r { }` holds the actions of each
  rank r { F; B; }
  let zero = 0;
  // CHECK:      error: unexpected `limit`
  // CHECK:      note: what ranks and links have stands in `cluster { limit = 1; }`
  limit = 8;
  let one = 1;
  // CHECK:      error: unexpected `memory`
  // CHECK:      note: what actions take stands in `model { memory ... }`
  memory F = 1;
  on rank r {
    // CHECK:      other-languages.pp:[[#@LINE+4]]:7: error: unexpected `=`
    // CHECK-NEXT:   [[#@LINE+3]] |     w = P - 1 - r;
    // CHECK-NEXT:      |       ^
    // CHECK-NEXT: note: `let w = ...;` names a value once; a variable that changes is the `i` of `for i in 0 .. n { }`
    w = P - 1 - r;
    // CHECK:      error: unexpected `(`, expected `=`
    // CHECK:      note: outside of `on rank`, `fn chunk(x) = ...;` is a function
    let chunk(k) = k % 2;
    // CHECK:      error: unexpected `{`, expected `..`
    // CHECK:      note: `for i in 0 .. n { }` counts from 0 to n - 1
    for i in range(w) { F; }
    // CHECK:      error: unexpected `(`, expected a name
    // CHECK:      note: `for i in 0 .. n { }` counts from 0 to n - 1
    for (i = 0; i < w; i++) { F; }
    if r == 0 { F; }
    // CHECK:      error: unexpected `r`
    // CHECK:      note: write `else if`
    elif r == 1 { F; B; }
    // CHECK:      error: unexpected `=`
    // CHECK:      note: `mb: m` names the microbatch
    F(mb=0);
  }
  // CHECK:      error: unexpected `{`
  // CHECK:      note: the rank has a name: `on rank r { }`
  on rank { F; B; }
}
