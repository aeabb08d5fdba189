// Patterns that do not suit the graphs.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
schedule patterns(both: bool = false) {
  ranks 1; microbatches 1; placement linear;
  model {
    layer expert {
      F: dispatch @ comm -> mlp @ comp -> combine @ comm;
      B: mlp @ comp -> W.mlp @ comp;
    }
    layer head { F: loss @ comp; }
    layers expert * 2, head;
    // CHECK:      pattern-errors.pp:[[#@LINE+5]]:31: error: `F.L0.combine` comes before `F.L0.mlp`, on which it depends [E0443]
    // CHECK-NEXT:   [[#@LINE+4]] |     overlap F { each expert { F.combine; F.mlp; F.dispatch; } F.loss; }
    // CHECK:      pattern-errors.pp:7:43: note: `F.L0.combine` is declared here
    // CHECK:      pattern-errors.pp:7:29: note: `F.L0.mlp` is declared here
    // CHECK:      note: place the node that the other depends on first
    overlap F { each expert { F.combine; F.mlp; F.dispatch; } F.loss; }
    // CHECK:      pattern-errors.pp:[[#@LINE+2]]:5: error: the pattern does not place `F.L0.mlp` [E0444]
    // CHECK:      pattern-errors.pp:7:29: note: the node is declared here
    overlap F, B { each expert { F.dispatch; F.combine; B.mlp; W.mlp; } F.loss; }
    // CHECK:      pattern-errors.pp:[[#@LINE+2]]:71: error: `B.mlp` is placed twice [E0445]
    // CHECK:      pattern-errors.pp:[[#@LINE+1]]:31: note: the first is here
    overlap B { each expert { B.mlp; if both { W.mlp; } else { W.mlp; B.mlp; } } }
    // CHECK:      pattern-errors.pp:[[#@LINE+1]]:5: error: the pattern does not place `F.loss` [E0444]
    overlap F, W { each expert { F.dispatch; F.mlp; F.combine; } }
    // CHECK:      pattern-errors.pp:[[#@LINE+1]]:60: error: `W.L1.mlp` comes before `B.L1.mlp`, on which it depends [E0443]
    overlap B, I { each expert { if both { B.mlp; } else { W.mlp; B.mlp; } } }
  }
  on rank r { F; B; }
}
