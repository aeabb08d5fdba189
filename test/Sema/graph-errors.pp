// Names and places in layers, stage graphs and patterns.
// RUN: not ppcc %s --schedule=names 2>&1 | FileCheck %s --implicit-check-not=error:

schedule names() {
  ranks 1; microbatches 1; placement linear;
  layer expert {
    F: dispatch @ comm -> mlp @ comp;
    B: mlp @ comp -> W.mlp @ comp;
    // CHECK: graph-errors.pp:[[#@LINE+1]]:5: error: `layer` cannot stand in a layer [E0350]
    layer plain;
    // CHECK: graph-errors.pp:[[#@LINE+1]]:8: error: `per layer` cannot stand in a layer [E0350]
    F: per layer;
    // CHECK: graph-errors.pp:[[#@LINE+1]]:5: error: `G` is neither an action nor a block [E0303]
    G: mlp @ comp;
    // CHECK: graph-errors.pp:[[#@LINE+1]]:8: error: `SEND_F` is neither an action nor a block [E0303]
    F: SEND_F.mlp @ comp;
  }
  // CHECK:      graph-errors.pp:[[#@LINE+2]]:9: error: `expert` is defined twice [E0308]
  // CHECK:      graph-errors.pp:[[#@LINE-13]]:9: note: first defined here
  layer expert { I: mlp @ comp; W: mlp @ comp; }
  stage graph s {
    // CHECK:      graph-errors.pp:[[#@LINE+1]]:11: error: unknown layer `experts`; did you mean `expert`? [E0351]
    layer experts;
    // CHECK: graph-errors.pp:[[#@LINE+1]]:18: error: layers go `up` or `down`, not `left` [E0353]
    F: per layer left -> loss @ comp;
    B: per layer down;
    // CHECK: graph-errors.pp:[[#@LINE+1]]:5: error: `the place of a node` cannot stand in a stage graph [E0350]
    F.mlp;
  }
  // CHECK: graph-errors.pp:[[#@LINE+1]]:15: error: a second `F` [E0317]
  overlap (F, F) { F.loss; }
  overlap (F, B) {
    // CHECK: graph-errors.pp:[[#@LINE+1]]:5: error: `last` cannot stand in front of `per layer` [E0350]
    last W.mlp;
    // CHECK:      graph-errors.pp:[[#@LINE+1]]:5: error: no stage graph has a node `F.lose` of F or B; did you mean `loss`? [E0352]
    F.lose;
    per layer {
      // CHECK: graph-errors.pp:[[#@LINE+1]]:7: error: no layer has a node `F.loss` of F or B [E0352]
      F.loss;
      // CHECK: graph-errors.pp:[[#@LINE+1]]:7: error: `last` cannot stand in `per layer` of a pattern [E0350]
      last W.mlp;
      // CHECK: graph-errors.pp:[[#@LINE+1]]:7: error: `the chain of an action` cannot stand in `per layer` of a pattern [E0350]
      F: mlp @ comp;
    }
    // CHECK:      graph-errors.pp:[[#@LINE+2]]:5: error: a second `per layer` [E0317]
    // CHECK:      graph-errors.pp:[[#@LINE-9]]:5: note: the first is here
    per layer { B.mlp; }
    // CHECK: graph-errors.pp:[[#@LINE+1]]:5: error: `next` cannot stand in a pattern [E0350]
    next F.mlp;
  }
  // CHECK: graph-errors.pp:[[#@LINE+1]]:32: error: both B and W have a node `W.mlp` [E0354]
  overlap (B, W) { per layer { W.mlp; } }
  model {
    // CHECK: graph-errors.pp:[[#@LINE+1]]:10: error: no layer or stage graph has a node `F.mpl` of any action [E0352]
    cost F.mpl = 1;
  }
  on rank r { F; B; }
}
