// What model, cluster and comm may say.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  ranks 1; microbatches 1; placement linear;
  model {
    // CHECK:      settings.pp:[[#@LINE+4]]:5: error: `model` has no setting `coost`; did you mean `cost`? [E0306]
    // CHECK-NEXT:   [[#@LINE+3]] |     coost F = 1;
    // CHECK-NEXT:     |     ^~~~~
    // CHECK-NEXT: note: docs/language.md lists the settings of `model`, `cluster` and `comm`
    coost F = 1;
    // CHECK:      settings.pp:[[#@LINE+4]]:10: error: `cost` does not take `Forward` [E0325]
    // CHECK-NEXT:   [[#@LINE+3]] |     cost Forward = 1;
    // CHECK-NEXT:     |          ^~~~~~~
    // CHECK-NEXT: note: docs/language.md lists the settings of `model`, `cluster` and `comm`
    cost Forward = 1;
    // CHECK:      settings.pp:[[#@LINE+4]]:5: error: `cost` takes one of F, B, I, W, overlap, but none is given [E0312]
    // CHECK-NEXT:   [[#@LINE+3]] |     cost = 1;
    // CHECK-NEXT:     |     ^~~~
    // CHECK-NEXT: note: docs/language.md lists what each function, placement and action takes
    cost = 1;
    // CHECK:      settings.pp:[[#@LINE+1]]:10: error: `cost` does not take `limit` [E0325]
    cost limit = 1;
    // CHECK:      settings.pp:[[#@LINE+1]]:5: error: `limit` is a setting of `cluster`, not of `model` [E0456]
    limit = 80;
    // CHECK:      settings.pp:[[#@LINE+1]]:12: error: `memory` does not take `overlap` [E0325]
    memory overlap = 1;
    // CHECK:      settings.pp:[[#@LINE+4]]:13: error: a setting of `model` must be float, but this is bool [E0310]
    // CHECK-NEXT:   [[#@LINE+3]] |     bytes = true;
    // CHECK-NEXT:     |             ^~~~
    // CHECK-NEXT: note: write an expression of that type
    bytes = true;
    // CHECK:      settings.pp:[[#@LINE+4]]:17: error: unknown name `nowhere` [E0301]
    // CHECK-NEXT:   [[#@LINE+3]] |     cost B pipe nowhere = 1;
    // CHECK-NEXT:     |                 ^~~~~~~
    // CHECK-NEXT: note: names come from parameters, `let`, `for`, `pipe` and `fn`, each declared before its use
    cost B pipe nowhere = 1;
    // CHECK:      settings.pp:[[#@LINE+1]]:26: error: unknown name `other` [E0301]
    cost I stage s = s + other;
  }
  cluster {
    // CHECK:      settings.pp:[[#@LINE+1]]:13: error: `latency` does not take `F` [E0325]
    latency F = 1;
    // CHECK:      settings.pp:[[#@LINE+1]]:5: error: `cost` is a setting of `model`, not of `cluster` [E0456]
    cost F = 1;
    // CHECK:      settings.pp:[[#@LINE+1]]:5: error: `cluster` has no setting `layout` [E0306]
    layout "t|t";
    // CHECK:      settings.pp:[[#@LINE+1]]:5: error: `cluster` has no setting `output` [E0306]
    output stage s = x[1] f32;
    // CHECK:      settings.pp:[[#@LINE+1]]:5: error: `cluster` has no setting `transports`; did you mean `transport`? [E0306]
    transports stream;
    // CHECK:      settings.pp:[[#@LINE+2]]:15: error: a second unit of time [E0317]
    // CHECK:      settings.pp:[[#@LINE+1]]:19: error: `units` does not take `byte`; did you mean `bytes`? [E0325]
    units ms, us, byte;
    // CHECK:      settings.pp:[[#@LINE+1]]:5: error: a second `units` [E0317]
    units s;
    // CHECK:      settings.pp:[[#@LINE+3]]:23: error: `transport` does not take `bufered`; did you mean `buffered`? [E0325]
    // CHECK:      settings.pp:[[#@LINE+2]]:32: error: `transport` does not take `buffered:0`; did you mean `buffered`? [E0325]
    // CHECK:      settings.pp:[[#@LINE+1]]:44: error: `transport` does not take `stream:4`; did you mean `stream`? [E0325]
    transport stream, bufered, buffered:0, stream:4, buffered:8;
    // CHECK:      settings.pp:[[#@LINE+1]]:5: error: `link` takes two ranks, as in `link a, b { ... }`, but 1 are given [E0312]
    link a { }
    // CHECK:      settings.pp:[[#@LINE+1]]:5: error: a second `link` [E0317]
    link a, b {
      latency = a + b;
      // CHECK:      settings.pp:[[#@LINE+1]]:7: error: this is not a setting of a link [E0457]
      limit = 1;
      // CHECK:      settings.pp:[[#@LINE+1]]:7: error: this is not a setting of a link [E0457]
      transport stream;
      // CHECK:      settings.pp:[[#@LINE+1]]:7: error: a second `link latency` [E0317]
      latency = a;
    }
  }
  comm {
    // CHECK:      settings.pp:[[#@LINE+1]]:11: error: `order` does not take `sweeep`; did you mean `sweep`? [E0325]
    order sweeep;
    // CHECK:      settings.pp:[[#@LINE+1]]:10: error: `fuse` does not take `all` [E0325]
    fuse all;
    // CHECK:      settings.pp:[[#@LINE+1]]:14: error: `prefetch` does not take `many`; it takes a number of at least 1 [E0325]
    prefetch many;
    // CHECK:      settings.pp:[[#@LINE+8]]:5: error: a second `prefetch` [E0317]
    // CHECK-NEXT:   [[#@LINE+7]] |     prefetch 1, 2;
    // CHECK-NEXT:     |     ^~~~~~~~
    // CHECK-NEXT: settings.pp:[[#@LINE-4]]:5: note: the first is here
    // CHECK-NEXT:   [[#@LINE-5]] |     prefetch many;
    // CHECK-NEXT:     |     ^~~~~~~~
    // CHECK-NEXT: note: keep one of them
    // CHECK:      settings.pp:[[#@LINE+1]]:5: error: `prefetch` takes 1 value, but 2 are given [E0312]
    prefetch 1, 2;
    // CHECK:      settings.pp:[[#@LINE+1]]:16: error: `preconnect` does not take `autom`; did you mean `auto`? [E0325]
    preconnect autom;
    // CHECK:      settings.pp:[[#@LINE+1]]:5: error: `comm` has no setting `oder`; did you mean `order`? [E0306]
    oder none;
  }
  on rank r { F; B; }
}
