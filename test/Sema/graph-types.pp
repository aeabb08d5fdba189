// Expressions in layers, and the sequence of layers.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
schedule types(n: int = 2) {
  ranks 1; microbatches 1; placement linear;
  model {
    // CHECK: graph-types.pp:[[#@LINE+1]]:23: error: the condition of `if` must be bool, but this is int [E0310]
    layer expert { if n { F: mlp @ comp; } F: loss @ comp; }
    // CHECK: graph-types.pp:[[#@LINE+1]]:32: error: a setting of a layer must be float, but this is bool [E0310]
    layer plain { cost F.mlp = true; F: mlp @ comp; let k = 2; cost F = k; static = k; }
    // CHECK: graph-types.pp:[[#@LINE+1]]:14: error: `memory` does not take `mlp`; only `cost` takes nodes [E0325]
    memory F.mlp = 1;
    // CHECK: graph-types.pp:[[#@LINE+1]]:21: error: a number of layers must be int, but this is bool [E0310]
    layers expert * true, plain * n;
  }
  on rank r { F; B; }
}

schedule sequence() {
  ranks 1; microbatches 1; placement linear;
  model {
    layer t { static = 1; }
    // CHECK:      graph-types.pp:[[#@LINE+2]]:18: error: expected `by`, `between` or `reads`, not `over` [E0459]
    // CHECK: graph-types.pp:[[#@LINE+1]]:5: error: a second `layers`, beside those of parts [E0317]
    layers t * 2 over t;
    part a { layers t * 2 between t, t; }
  }
  on rank r { F; B; }
}
