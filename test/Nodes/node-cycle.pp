// Nodes that wait for each other, and nodes without a lane or with two.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
schedule cycle() {
  ranks 1; microbatches 1; placement linear;
  model { layer expert {
    // CHECK:      cycle.pp:[[#@LINE+1]]:8: error: node `mlp` has no lane [E0441]
    B: mlp -> W.mlp @ comp;
    // CHECK:      cycle.pp:[[#@LINE+3]]:23: error: node `mlp` already has a lane [E0440]
    // CHECK:      cycle.pp:[[#@LINE+2]]:8: note: the first is here
    // CHECK:      note: give the lane of a node once
    I: mlp @ comp; I: mlp @ comm;
    F: a @ comp -> b @ comp -> c @ comp;
    // CHECK:      cycle.pp:[[#@LINE+3]]:36: error: the nodes of `F` form a cycle: F.a -> F.b -> F.c -> F.a [E0442]
    // CHECK-NEXT:   [[#@LINE+2]] |     F: x @ comp -> a; F: b -> c -> a;
    // CHECK:      note: an arrow says
    F: x @ comp -> a; F: b -> c -> a;
  } layers expert; }
  backward when false;
  on rank r { F; }
}
