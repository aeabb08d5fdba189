// Patterns that do not suit the graphs.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: not ppcc %s -D both=true 2>&1 | FileCheck %s --check-prefix=BOTH --implicit-check-not=error:
schedule patterns(both: bool = false) {
  ranks 1; microbatches 1; placement linear;
  layer expert {
    F: dispatch @ comm -> mlp @ comp -> combine @ comm;
    B: mlp @ comp -> W.mlp @ comp;
  }
  stage graph s {
    repeat 2 { layer expert; }
    F: per layer up -> loss @ comp;
    // BOTH: pattern-errors.pp:[[#@LINE+1]]:18: error: `F` goes through its layers both up and down [E0447]
    if both { F: per layer down -> loss; }
    B: per layer down;
  }
  // CHECK:      pattern-errors.pp:[[#@LINE+5]]:29: error: `F.L0.combine` comes before `F.L0.mlp`, which it needs [E0443]
  // CHECK-NEXT:   [[#@LINE+4]] |   overlap (F) { per layer { F.combine; F.mlp; F.dispatch; } F.loss; }
  // CHECK:      pattern-errors.pp:7:41: note: `F.L0.combine` is declared here
  // CHECK:      pattern-errors.pp:7:27: note: `F.L0.mlp` is declared here
  // CHECK:      note: let the pattern place what is needed first
  overlap (F) { per layer { F.combine; F.mlp; F.dispatch; } F.loss; }
  // CHECK:      pattern-errors.pp:[[#@LINE+2]]:3: error: the pattern has no place for `F.L0.mlp` [E0444]
  // CHECK:      pattern-errors.pp:7:27: note: the node is declared here
  overlap (F, B) { per layer { F.dispatch; F.combine; B.mlp; W.mlp; } F.loss; }
  // CHECK:      pattern-errors.pp:[[#@LINE+2]]:69: error: `B.mlp` has a place already [E0445]
  // CHECK:      pattern-errors.pp:[[#@LINE+1]]:29: note: the first is here
  overlap (B) { per layer { B.mlp; if both { W.mlp; } else { W.mlp; B.mlp; } } }
  // CHECK:      pattern-errors.pp:[[#@LINE+1]]:3: error: the pattern has no place for `F.loss` [E0444]
  overlap (F, W) { per layer { F.dispatch; F.mlp; F.combine; } }
  // CHECK:      pattern-errors.pp:[[#@LINE+1]]:58: error: `W.L1.mlp` comes before `B.L1.mlp`, which it needs [E0443]
  overlap (B, I) { per layer { if both { B.mlp; } else { W.mlp; B.mlp; } } }
  on rank r { F; B; }
}
