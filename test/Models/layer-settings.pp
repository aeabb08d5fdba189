// What a layer cannot say of itself: what is of messages, of a whole group, or of some microbatches.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
schedule settings() {
  ranks 1; microbatches 1; placement linear;
  model {
    // CHECK: layer-settings.pp:[[#@LINE+1]]:15: error: this is not a setting of a layer [E0458]
    layer t { bytes = 1; }
    // CHECK: layer-settings.pp:[[#@LINE+1]]:15: error: this is not a setting of a layer [E0458]
    layer u { scale F = 2; }
    // CHECK: layer-settings.pp:[[#@LINE+1]]:15: error: this is not a setting of a layer [E0458]
    layer v { cost overlap = 2; }
    layers t, u, v;
  }
  on rank r { F; B; }
}
