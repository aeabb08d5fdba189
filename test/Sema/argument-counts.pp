// Functions, blocks, actions, counters and placements say what they take.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

fn two(x, y) = x + y;
block one(x) { repeat x { F; } }
schedule s() {
  // CHECK:      argument-counts.pp:[[#@LINE+5]]:9: error: `two` takes 2 arguments, but 1 is given [E0312]
  // CHECK-NEXT:   [[#@LINE+4]] |   ranks two(1);
  // CHECK-NEXT:     |         ^~~
  // CHECK-NEXT: note: write `two(x, y)`
  // CHECK-NEXT: note: docs/language.md lists what each function, placement and action takes
  ranks two(1);
  // CHECK:      argument-counts.pp:[[#@LINE+1]]:16: error: `two` takes arguments, but none are given [E0312]
  microbatches two;
  // CHECK:      argument-counts.pp:[[#@LINE+2]]:13: error: `loop` takes 1 argument, but 0 are given [E0312]
  // CHECK:      note: write `loop(V)`
  placement loop;
  // CHECK:      argument-counts.pp:[[#@LINE+1]]:11: error: `min` takes 2 arguments or more, or a list, but 1 is given [E0312]
  let a = min(1);
  // CHECK:      argument-counts.pp:[[#@LINE+1]]:11: error: `abs` takes 1 argument, but 2 are given [E0312]
  let b = abs(1, 2);
  on rank r {
    // CHECK:      argument-counts.pp:[[#@LINE+1]]:5: error: `one` takes 1 argument, but 0 are given [E0312]
    one;
    // CHECK:      argument-counts.pp:[[#@LINE+1]]:5: error: `one` takes 1 argument, but 2 are given [E0312]
    one(1, 2);
    // CHECK:      argument-counts.pp:[[#@LINE+1]]:5: error: `F` takes a chunk and perhaps `mb:`, but 2 are given [E0312]
    F(0, 0);
    // CHECK:      argument-counts.pp:[[#@LINE+1]]:5: error: `B` takes a chunk and perhaps `mb:`, but 2 are given [E0312]
    B(mb: 0, mb: 1);
    // CHECK:      argument-counts.pp:[[#@LINE+1]]:13: error: `issued` takes an action and perhaps a chunk, but 0 are given [E0312]
    let c = issued();
    // CHECK:      argument-counts.pp:[[#@LINE+1]]:13: error: `issued` takes arguments, but none are given [E0312]
    let d = issued;
    // CHECK:      argument-counts.pp:[[#@LINE+1]]:13: error: `pending` takes a chunk or a pipe, but 2 are given [E0312]
    let e = pending(0, 1);
    // CHECK:      argument-counts.pp:[[#@LINE+4]]:13: error: unknown function `one` [E0302]
    // CHECK-NEXT:   [[#@LINE+3]] |     let f = one(1);
    // CHECK-NEXT:     |             ^~~
    // CHECK-NEXT: note: declare it before its use: `fn NAME(x) = EXPR;`
    let f = one(1);
    // CHECK:      argument-counts.pp:[[#@LINE+4]]:5: error: `two` is neither an action nor a block [E0303]
    // CHECK-NEXT:   [[#@LINE+3]] |     two(1, 2);
    // CHECK-NEXT:     |     ^~~
    // CHECK-NEXT: note: the actions are F, B, I, W and those that are declared; a block is declared before its use: `block NAME() { ... }`
    two(1, 2);
  }
}
// CHECK:      argument-counts.pp:[[#@LINE+1]]:51: error: `v` takes no argument, but 1 is given [E0312]
schedule t() { ranks 1; microbatches 1; placement v(2); on rank r { F; B; } }
