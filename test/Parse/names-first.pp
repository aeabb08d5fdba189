// What is expected behind a name depends on the body: a rank acts.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  ranks 1; microbatches 1; placement linear;
  // CHECK:      names-first.pp:[[#@LINE+4]]:3: error: unexpected `layer`, expected a declaration or `}` [E0204]
  // CHECK-NEXT:   [[#@LINE+3]] |   layer plain { F: mlp @ comp; }
  // CHECK-NEXT:     |   ^~~~~
  // CHECK-NEXT: note: layers and parts belong in `model { }`
  layer plain { F: mlp @ comp; }
  on rank r {
    // CHECK: names-first.pp:[[#@LINE+1]]:7: error: unexpected `B`, expected `;` or `(` [E0204]
    F B;
    // CHECK: names-first.pp:[[#@LINE+1]]:7: error: unexpected `repeat`, expected `;` or `(` [E0204]
    F repeat 2 { B; }
    // CHECK:      names-first.pp:[[#@LINE+1]]:6: error: expected `;` or `(` [E0203]
    F
    B;
  }
}
