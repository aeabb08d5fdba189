// Unknown values, functions, actions, types, placements and labels, each with what was probably meant.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK:      unknown-names.pp:[[#@LINE+4]]:34: error: unknown type `boool`; did you mean `bool`? [E0304]
// CHECK-NEXT:   [[#@LINE+3]] | schedule s(width: int = 2, deep: boool = true) {
// CHECK-NEXT:     |                                  ^~~~~
// CHECK-NEXT: note: the types are int, bool, float, pipe and part
schedule s(width: int = 2, deep: boool = true) {
  // CHECK:      unknown-names.pp:[[#@LINE+4]]:9: error: unknown name `widht`; did you mean `width`? [E0301]
  // CHECK-NEXT:   [[#@LINE+3]] |   ranks widht;
  // CHECK-NEXT:     |         ^~~~~
  // CHECK-NEXT: note: names come from parameters, `let`, `for`, `pipe` and `fn`, each declared before its use
  ranks widht;
  microbatches 2;
  // CHECK:      unknown-names.pp:[[#@LINE+4]]:13: error: unknown placement `lienar`; did you mean `linear`? [E0305]
  // CHECK-NEXT:   [[#@LINE+3]] |   placement lienar;
  // CHECK-NEXT:     |             ^~~~~~
  // CHECK-NEXT: note: the placements of the library are linear, loop(V), v and wave(V); declare others:
  placement lienar;
  // CHECK:      unknown-names.pp:[[#@LINE+4]]:13: error: unknown function `maxi`; did you mean `max`? [E0302]
  // CHECK-NEXT:   [[#@LINE+3]] |   let far = maxi(1, 2);
  // CHECK-NEXT:     |             ^~~~
  // CHECK-NEXT: note: declare it before its use: `fn NAME(x) = EXPR;`
  let far = maxi(1, 2);
  fn halve(x) = x / 2;
  block both() { F; B; }
  on rank r {
    // CHECK:      unknown-names.pp:[[#@LINE+2]]:13: error: unknown function `halv`; did you mean `halve`? [E0302]
    // CHECK:      unknown-names.pp:[[#@LINE+1]]:25: error: unknown name `nothing` [E0301]
    let w = halv(far) + nothing;
    // CHECK:      unknown-names.pp:[[#@LINE+4]]:5: error: `boht` is neither an action nor a block; did you mean `both`? [E0303]
    // CHECK-NEXT:   [[#@LINE+3]] |     boht();
    // CHECK-NEXT:     |     ^~~~
    // CHECK-NEXT: note: the actions are F, B, I, W and those that are declared; a block is declared before its use: `block NAME() { ... }`
    boht();
    // CHECK:      unknown-names.pp:[[#@LINE+1]]:5: error: `FORWARD` is neither an action nor a block [E0303]
    FORWARD;
    // CHECK:      unknown-names.pp:[[#@LINE+4]]:10: error: unknown label `mbb`; did you mean `mb`? [E0307]
    // CHECK-NEXT:   [[#@LINE+3]] |     F(0, mbb: 1);
    // CHECK-NEXT:     |          ^~~
    // CHECK-NEXT: note: the one label is `mb:`, the number of the microbatch
    F(0, mbb: 1);
    // CHECK:      unknown-names.pp:[[#@LINE+6]]:10: error: unknown label `lable` [E0307]
    // CHECK:      unknown-names.pp:[[#@LINE+5]]:5: error: `both` takes no argument, but 1 is given [E0312]
    // CHECK-NEXT:   [[#@LINE+4]] |     both(lable: 1);
    // CHECK-NEXT:     |     ^~~~
    // CHECK-NEXT: note: write `both`
    // CHECK-NEXT: note: docs/language.md lists what each function, placement and action takes
    both(lable: 1);
    // CHECK:      unknown-names.pp:[[#@LINE+1]]:15: error: `Q` is neither an action nor a block [E0303]
    if issued(Q) == 0 { F; }
    // CHECK:      unknown-names.pp:[[#@LINE+1]]:15: error: `1 + 1` is neither an action nor a block [E0303]
    if issued(1 + 1) == 0 { F; }
    // CHECK:      unknown-names.pp:[[#@LINE+1]]:11: error: `X` is neither an action nor a block [E0303]
    drain X;
    // CHECK:      unknown-names.pp:[[#@LINE+1]]:11: error: `SEND_F` is neither an action nor a block [E0303]
    defer SEND_F { B; }
  }
}
