// A statement in a body that cannot hold it: the message says what the body holds.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

block b() {
  // CHECK:      misplaced.pp:[[#@LINE+4]]:3: error: `edge` is not allowed in the body of a rank [E0350]
  // CHECK-NEXT:   [[#@LINE+3]] |   edge stage 0 -> stage 1;
  // CHECK-NEXT:     |   ^~~~
  // CHECK-NEXT: note: of statements, the body of a rank holds: an action, phase, overlap, defer, drain, let, if, for, repeat, while
  edge stage 0 -> stage 1;
}
model m() {
  // CHECK:      misplaced.pp:[[#@LINE+2]]:3: error: `if` is not allowed in a model [E0350]
  // CHECK:      note: of statements, a model holds: a setting, tensors, layout, a list of words, a block with names, a pattern, require, fn, let
  if true { cost F = 1; }
  // CHECK: misplaced.pp:[[#@LINE+1]]:3: error: `the chain of an action` is not allowed in a model [E0350]
  F: mlp @ comp;
  // CHECK: misplaced.pp:[[#@LINE+1]]:3: error: `the place of a node` is not allowed in a model [E0350]
  last F.mlp;
  layer expert {
    // CHECK: misplaced.pp:[[#@LINE+1]]:5: error: `require` is not allowed in a layer [E0350]
    require true;
    // CHECK: misplaced.pp:[[#@LINE+1]]:5: error: `stages` is not allowed in a layer [E0350]
    stages 2;
    F: mlp @ comp;
  }
  part p {
    layers expert;
    // CHECK: misplaced.pp:[[#@LINE+1]]:5: error: `a setting` is not allowed in a part [E0350]
    cost F = 1;
  }
  overlap F {
    // CHECK: misplaced.pp:[[#@LINE+1]]:5: error: `a setting` is not allowed in a pattern [E0350]
    cost F = 1;
    // CHECK: misplaced.pp:[[#@LINE+1]]:19: error: `a pattern` is not allowed in `each` of a pattern [E0350]
    each expert { overlap F { } F.mlp; }
  }
}
cluster c() {
  // CHECK: misplaced.pp:[[#@LINE+1]]:3: error: `the place of a node` is not allowed in a cluster [E0350]
  F.mlp;
  // CHECK: misplaced.pp:[[#@LINE+1]]:15: error: this is not a setting of a link [E0457]
  link a, b { fn f(x) = x; latency = 1; }
}
schedule heads() {
  ranks 2; microbatches 2; placement linear;
  // CHECK:      misplaced.pp:[[#@LINE+2]]:3: error: `if` is not allowed in the head of a schedule [E0350]
  // CHECK:      note: of statements, the head of a schedule holds: edge, let, for
  if true { F; }
  // CHECK: misplaced.pp:[[#@LINE+1]]:3: error: `repeat` is not allowed in the head of a schedule [E0350]
  repeat 2 { edge stage 0 -> stage 1; }
  // CHECK: misplaced.pp:[[#@LINE+1]]:3: error: `while` is not allowed in the head of a schedule [E0350]
  while true { }
  // CHECK:      misplaced.pp:[[#@LINE+2]]:21: error: `an action` is not allowed in a loop over edges [E0350]
  // CHECK:      note: of statements, a loop over edges holds: edge, for
  for i in 0 .. 1 { F(i); }
  // CHECK: misplaced.pp:[[#@LINE+1]]:39: error: `let` is not allowed in a loop over edges [E0350]
  for i in 0 .. 1 { for j in 0 .. 1 { let x = j; edge stage i -> stage j; } }
  on rank r { F; B; }
}
schedule pipes() {
  ranks 2;
  pipe p {
    microbatches 2; placement linear;
    // CHECK:      misplaced.pp:[[#@LINE+2]]:5: error: `let` is not allowed in a pipe [E0350]
    // CHECK:      note: of statements, a pipe holds: edge, for
    let x = 1;
  }
  on rank r { F; B; }
}
