// Dealt out are the layers that `by` names, though others have a count too.
// RUN: ppcc %s --emit=ir | FileCheck %s
// CHECK: "layout": ["vt", "tuuuuuuv"]
schedule by_t() {
  ranks 2; microbatches 1; placement linear;
  model {
    layer t { cost F = 1; }
    layer u { cost F = 1; }
    layer v { cost F = 1; }
    layers v, t * 2, u * 6, v by t;
  }
  on rank r { F; B; }
}
