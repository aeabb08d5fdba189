// `recv` and `send` are of an action as a whole, at the ends of its stage.
// RUN: not ppcc %s:part 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: not ppcc %S/Inputs/numbered.pp 2>&1 | FileCheck %s --check-prefix=NUMBERED --implicit-check-not=error:
// NUMBERED: numbered.pp:5:22: error: `recv` is not a node of a layer with a number, or of another action [E0448]
schedule part() {
  ranks 1; microbatches 1; placement linear;
  model {
    // CHECK: hook-errors.pp:[[#@LINE+1]]:22: error: `recv` is not a node of a layer with a number, or of another action [E0448]
    layer plain { B: F.recv @ comp -> mlp @ comp; }
    layers plain;
  }
  on rank r { F; B; }
}
