// What is expected behind a name depends on the body: a rank acts, a graph has chains and places of nodes.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  ranks 1; microbatches 1; placement linear;
  layer expert {
    // CHECK: names-first.pp:[[#@LINE+1]]:7: error: unexpected `attention`, expected `:` or `.` [E0204]
    F attention @ comp;
    // CHECK: names-first.pp:[[#@LINE+1]]:7: error: unexpected `->`, expected `:` or `.` [E0204]
    F -> mlp;
  }
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
