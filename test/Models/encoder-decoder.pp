// An encoder whose last stage every stage of the decoder reads; the decoder has an input of its own.
// RUN: ppcc %s -o %t.json && ppcc-run %t.json | FileCheck %s
// RUN: ppcc %s -D E=1 -D D=1 -o %t.json && ppcc-run %t.json | FileCheck %s --check-prefix=SMALL
// RUN: ppcc %s --emit=ir | FileCheck %s --check-prefix=IR
// CHECK: 1 programs, 12 layers exact, 0 in another order, 0 failed
// SMALL: 1 programs, 4 layers exact, 0 in another order, 0 failed
// IR: "skip_edges": {{.}}[2,4], [2,5]]
schedule encoder_decoder(E: int = 3, D: int = 3, M: int = 4) {
  ranks E + D;
  microbatches M;
  placement linear;
  for d in 1 .. D { edge stage E - 1 -> stage E + d; }
  on rank r {
    let w = min(E + D - 1 - r, M);
    repeat w { F; }
    repeat M - w { F; B; }
    repeat w { B; }
  }
}
