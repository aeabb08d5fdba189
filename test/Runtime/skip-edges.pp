// A stage with several inputs and several readers, on its own rank and on others; and a program without backward.
// RUN: ppcc %s -o %t.json
// RUN: ppcc-run %t.json | FileCheck %s
// RUN: ppcc %s -D training=false -o %t.forward.json
// RUN: ppcc-run %t.forward.json | FileCheck %s --check-prefix=FORWARD
// CHECK: 1 programs, 12 layers exact, 0 in another order, 0 failed
// FORWARD: 1 programs, 12 layers exact, 0 in another order, 0 failed
schedule skip(P: int = 3, training: bool = true) {
  ranks P;
  microbatches 4;
  placement loop(2);
  backward when training;
  edge stage 0 -> stage 2;
  edge stage 0 -> stage 3;
  edge stage 0 -> stage 5;
  edge stage 1 -> stage 4;
  edge stage 2 -> stage 4;
  on rank r {
    for c in 0 .. 2 { repeat 4 { F(c); } }
    if training { for c in 0 .. 2 { repeat 4 { B(1 - c); } } }
  }
}
