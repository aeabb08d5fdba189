// `recv` and `send` are of an action as a whole.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
schedule misplaced() {
  ranks 1; microbatches 1; placement linear;
  layer plain {
    F: mlp @ comp;
    // CHECK: hook-errors.pp:[[#@LINE+1]]:15: error: `send` is no node of a layer, or of another action [E0448]
    B: mlp -> send @ comp;
  }
  stage graph s {
    layer plain;
    F: recv @ comp -> per layer;
    // CHECK: hook-errors.pp:[[#@LINE+1]]:8: error: `recv` is no node of a layer, or of another action [E0448]
    B: F.recv @ comp -> per layer;
  }
  on rank r { F; B; }
}
