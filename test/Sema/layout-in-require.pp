// The letter of `layout(t)` is no value: a `require` that asks for it fails with its message, whatever else is called `t`.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: ppcc %s --layout 'tttt|ttttL' --emit=actions | FileCheck %s --check-prefix=FINE
// FINE: rank 0: 0F0

schedule s(t: int = 8, F: int = 1) {
  ranks 2; microbatches 1; placement linear;
  model { layout "tt|tL"; }
  fn layers() = layout(t);
  // CHECK:      layout-in-require.pp:[[#@LINE+5]]:11: error: the model has 8 layers [E0404]
  // CHECK-NEXT:   [[#@LINE+4]] |   require layout(t) == t and layers() == layout(t, 0) + layout(t, F), "the model has 8 layers";
  // CHECK-NEXT:     |           ^~~
  // CHECK-NEXT: note: `layout(t) == t and layers() == layout(t, 0) + layout(t, F)` is false with t = 8, F = 1
  // CHECK-NEXT: note: choose other values with `-D NAME=VALUE`
  require layout(t) == t and layers() == layout(t, 0) + layout(t, F), "the model has 8 layers";
  on rank r { while issued(F) < F { F; } B; }
}
