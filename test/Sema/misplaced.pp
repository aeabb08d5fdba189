// A statement in a body that cannot hold it: the message says what the body holds.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

block b() {
  // CHECK:      misplaced.pp:[[#@LINE+4]]:3: error: `edge` cannot stand in the body of a rank [E0350]
  // CHECK-NEXT:   [[#@LINE+3]] |   edge stage 0 -> stage 1;
  // CHECK-NEXT:     |   ^~~~
  // CHECK-NEXT: note: of statements, the body of a rank holds: an action, phase, overlap, defer, drain, let, if, for, repeat, while
  edge stage 0 -> stage 1;
  // CHECK: misplaced.pp:[[#@LINE+1]]:14: error: `layer` cannot stand in the body of a rank [E0350]
  repeat 2 { layer x; F; }
  // CHECK: misplaced.pp:[[#@LINE+1]]:3: error: `per layer` cannot stand in the body of a rank [E0350]
  per layer { F.mlp; }
  // CHECK: misplaced.pp:[[#@LINE+1]]:13: error: `the chain of an action` cannot stand in the body of a rank [E0350]
  if true { F: mlp @ comp; } else { B; }
  // CHECK: misplaced.pp:[[#@LINE+1]]:3: error: `the place of a node` cannot stand in the body of a rank [E0350]
  last F.mlp;
}
schedule heads() {
  ranks 2; microbatches 2; placement linear;
  // CHECK:      misplaced.pp:[[#@LINE+2]]:3: error: `if` cannot stand in the head of a schedule [E0350]
  // CHECK:      note: of statements, the head of a schedule holds: edge, let, for
  if true { F; }
  // CHECK: misplaced.pp:[[#@LINE+1]]:3: error: `repeat` cannot stand in the head of a schedule [E0350]
  repeat 2 { edge stage 0 -> stage 1; }
  // CHECK: misplaced.pp:[[#@LINE+1]]:3: error: `while` cannot stand in the head of a schedule [E0350]
  while true { }
  // CHECK:      misplaced.pp:[[#@LINE+2]]:21: error: `an action` cannot stand in a loop over edges [E0350]
  // CHECK:      note: of statements, a loop over edges holds: edge, for
  for i in 0 .. 1 { F(i); }
  // CHECK: misplaced.pp:[[#@LINE+1]]:39: error: `let` cannot stand in a loop over edges [E0350]
  for i in 0 .. 1 { for j in 0 .. 1 { let x = j; edge stage i -> stage j; } }
  layer expert {
    // CHECK: misplaced.pp:[[#@LINE+1]]:5: error: `an action` cannot stand in a layer [E0350]
    F(0);
    // CHECK: misplaced.pp:[[#@LINE+1]]:5: error: `for` cannot stand in a layer [E0350]
    for i in 0 .. 2 { }
  }
  stage graph s {
    // CHECK: misplaced.pp:[[#@LINE+1]]:5: error: `while` cannot stand in a stage graph [E0350]
    while true { }
    // CHECK: misplaced.pp:[[#@LINE+1]]:5: error: `let` cannot stand in a stage graph [E0350]
    let x = 1;
    F: per layer;
  }
  on rank r { F; B; }
}
schedule pipes() {
  ranks 2;
  pipe p {
    microbatches 2; placement linear;
    // CHECK:      misplaced.pp:[[#@LINE+2]]:5: error: `let` cannot stand in a pipe [E0350]
    // CHECK:      note: of statements, a pipe holds: edge, for
    let x = 1;
  }
  on rank r { F; B; }
}
