// What those write who come from other systems.
// RUN: not ppcc %s 2>&1 | FileCheck %s

schedule s(M: int = 2) {
  ranks 2;
  placement linear;
  microbatches M;
  on rank r {
    // CHECK: :[[#@LINE+2]]:16: error: `Fwd` is neither an action nor a block [E0303]
    // CHECK: note: did you mean `F`?
    repeat M { Fwd; }
    // CHECK: :[[#@LINE+2]]:16: error: `Bwd` is neither an action nor a block [E0303]
    // CHECK: note: did you mean `B`?
    repeat M { Bwd; }
    // CHECK: :[[#@LINE+2]]:5: error: `SEND_F` is neither an action nor a block [E0303]
    // CHECK: note: the compiler places sends and receives (`--comm-order`)
    SEND_F;
    // CHECK: :[[#@LINE+2]]:12: error: the count of `repeat` must be int, but this is float [E0310]
    // CHECK: note: `/` of two ints gives an int, rounded down
    repeat M / 2.0 { F; }
  }
}
