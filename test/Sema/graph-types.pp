// Expressions in graphs, the scope of their names, and what a graph cannot do without.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
schedule types(n: int = 2) {
  ranks 1; microbatches 1; placement linear;
  // CHECK: graph-types.pp:[[#@LINE+1]]:21: error: the condition of `if` must be bool, but this is int [E0310]
  layer expert { if n { F: mlp @ comp; } F: loss @ comp; }
  stage graph s {
    // CHECK: graph-types.pp:[[#@LINE+1]]:12: error: the count of `repeat` must be int, but this is bool [E0310]
    repeat true { layer expert; }
    // CHECK: graph-types.pp:[[#@LINE+1]]:19: error: the range of `for` must be int, but this is bool [E0310]
    for i in 0 .. true { if i == s { layer expert; } }
    // CHECK: graph-types.pp:[[#@LINE+1]]:8: error: unknown name `i` [E0301]
    if i == 0 { layer expert; }
    F: per layer;
  }
  // CHECK:      graph-types.pp:[[#@LINE+2]]:3: error: a second `stage graph` [E0317]
  // CHECK:      graph-types.pp:[[#@LINE-10]]:3: note: the first is here
  stage graph t { F: per layer; }
  // CHECK: graph-types.pp:[[#@LINE+1]]:20: error: `memory` does not take `mlp`; only `cost` takes nodes [E0325]
  model { memory F.mlp = 1; }
  on rank r { F; B; }
}

schedule no_graph() {
  ranks 1; microbatches 1; placement linear;
  // CHECK: graph-types.pp:[[#@LINE+1]]:3: error: schedule `no_graph` has no `stage graph`, which says what the layers of each stage are [E0318]
  layer expert { F: mlp @ comp; }
  // CHECK: graph-types.pp:[[#@LINE+1]]:16: error: no layer or stage graph has a node `F.mpl` of any action [E0352]
  model { cost F.mpl = 1; }
  on rank r { F; B; }
}
