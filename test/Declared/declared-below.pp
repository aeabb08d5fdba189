// Rules, blocks and schedules know what actions say of themselves below them.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: ppcc %S/Inputs/below.pp --emit=actions | FileCheck %s --check-prefix=FINE
// FINE: rank 0: 0F0 0LOG 0B0 STEP

// CHECK:      declared-below.pp:[[#@LINE+1]]:22: error: `S` runs once per stage and takes no microbatch [E0335]
block b() { S(0, mb: 0); }
with at_stage;
rule at_stage() {
  // CHECK:      declared-below.pp:[[#@LINE+1]]:21: error: expected an action of a microbatch, not `S` [E0337]
  insert A after F, S;
}
action A { after F; }
action S { per stage; after F; }
schedule s() {
  ranks 1; microbatches 1; placement linear;
  on rank r { F; b(); B; }
}
