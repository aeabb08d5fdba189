// Names and places in layers and patterns.
// RUN: not ppcc %s:names 2>&1 | FileCheck %s
// RUN: not ppcc %s:names 2>&1 | grep error: | count 19

schedule names() {
  ranks 1; microbatches 1; placement linear;
  model {
    layer expert {
      F: dispatch @ comm -> mlp @ comp;
      B: mlp @ comp -> W.mlp @ comp;
      // CHECK-DAG: graph-errors.pp:[[#@LINE+1]]:7: error: `G` is neither an action nor a block [E0303]
      G: mlp @ comp;
      // CHECK-DAG: graph-errors.pp:[[#@LINE+1]]:10: error: `SEND_F` is neither an action nor a block [E0303]
      F: SEND_F.mlp @ comp;
      // CHECK-DAG: graph-errors.pp:[[#@LINE+1]]:7: error: this is not a setting of a layer [E0458]
      cost F pipe p = 1;
      // CHECK-DAG: graph-errors.pp:[[#@LINE+1]]:7: error: this is not a setting of a layer [E0458]
      output stage s = x[4] f32;
    }
    // CHECK-DAG: graph-errors.pp:[[#@LINE+2]]:11: error: `expert` is defined twice [E0308]
    // CHECK-DAG: graph-errors.pp:[[#@LINE-13]]:11: note: first defined here
    layer expert { I: mlp @ comp; W: mlp @ comp; }
    layer head { F: loss @ comp; }
    overlap I {
      // CHECK-DAG: graph-errors.pp:[[#@LINE+1]]:7: error: unexpected `every`, expected `each`, the only block of a pattern [E0204]
      every expert { }
      each expert {
        // CHECK-DAG: graph-errors.pp:[[#@LINE+1]]:9: error: `the chain of an action` is not allowed in `each` of a pattern [E0350]
        F: mlp @ comp;
      }
    }
    // CHECK-DAG: graph-errors.pp:[[#@LINE+1]]:5: error: `gives` needs a stage [E0468]
    gives x[4] f32;
    // CHECK-DAG: graph-errors.pp:[[#@LINE+1]]:12: error: unknown layer `experts`; did you mean `expert`? [E0351]
    layers experts, expert * 2, head;
    // CHECK-DAG: graph-errors.pp:[[#@LINE+1]]:16: error: a second `F` [E0317]
    overlap F, F { F.loss; }
    overlap F, B {
      // CHECK-DAG: graph-errors.pp:[[#@LINE+1]]:7: error: `last` is not allowed in front of `each` [E0350]
      last W.mlp;
      // CHECK-DAG: graph-errors.pp:[[#@LINE+1]]:7: error: no layer has a node `F.lose` of F or B; did you mean `loss`? [E0352]
      F.lose;
      each expert {
        // CHECK-DAG: graph-errors.pp:[[#@LINE+1]]:9: error: no layer has a node `F.loss` of F or B [E0352]
        F.loss;
        // CHECK-DAG: graph-errors.pp:[[#@LINE+1]]:9: error: `last` is not allowed in `each` of a pattern [E0350]
        last W.mlp;
      }
      // CHECK-DAG: graph-errors.pp:[[#@LINE+2]]:7: error: a second `each` [E0317]
      // CHECK-DAG: graph-errors.pp:[[#@LINE-7]]:7: note: the first is here
      each expert { B.mlp; }
      // CHECK-DAG: graph-errors.pp:[[#@LINE+1]]:7: error: `next` is not allowed in a pattern [E0350]
      next F.mlp;
    }
    // CHECK-DAG: graph-errors.pp:[[#@LINE+1]]:34: error: both B and W have a node `W.mlp` [E0354]
    overlap B, W { each expert { W.mlp; } }
    // CHECK-DAG: graph-errors.pp:[[#@LINE+1]]:10: error: no layer has a node `F.mpl` of any action; did you mean `mlp`? [E0352]
    cost F.mpl = 1;
  }
  on rank r { F; B; }
}
