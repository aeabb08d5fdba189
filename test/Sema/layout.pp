// A layout says which layers each stage has; costs follow from it.
// RUN: ppcc %s --emit=ir --comm-order=none > %t.ir
// RUN: FileCheck %s < %t.ir
// RUN: ppcc %s --emit=ir --comm-order=none --layout='E t*3 | L' | FileCheck %s --check-prefix=GIVEN
// Text and JSON carry it.
// RUN: ppcc %t.ir --passes=unroll --emit=ir | diff %t.ir -
// RUN: ppcc %s --comm-order=none -o %t.json
// RUN: %python %S/../Emit/Inputs/validate.py %ppcc_src_root/docs/program.schema.json %t.json
// RUN: ppcc %t.json --comm-order=none --emit=ir | FileCheck %s

schedule laid_out(P: int = 2) {
  ranks P; microbatches 1; placement linear;
  require layout(t) >= layout(E), "no layers";
  model {
    layout "E(t)*2,|(t)*3 L";
    cost F stage s = layout(t, s) + 0.5 * (layout(E, s) + layout(L, s));
    static stage s = 10 * layout(t, s);
  }
  on rank r { F; B; }
}

// CHECK:      "layout": ["Ett", "tttL"]
// CHECK-NEXT: {"cost": {"F": {"main": [2.5,3.5]}},
// CHECK-NEXT: "static": {"main": [20,30]}}

// GIVEN:      "layout": ["Ettt", "L"]
// GIVEN-NEXT: {"cost": {"F": {"main": [3.5,0.5]}}
