// A schedule that is in no library trains: two microbatches at a time through chunks that fold back, with a shortcut
// past the middle; I at once, W when the rank has nothing better to do.
// REQUIRES: libtorch
// RUN: ppcc %s -o %t.json
// RUN: pprun --check --threads --steps=3 %t.json | FileCheck %s
// RUN: pprun --check --steps=3 --recompute %t.json | FileCheck %s
// RUN: ppcc %s -D P=3 -D M=6 -o %t.three.json
// RUN: pprun --check %t.three.json --layers=2 | FileCheck %s
// CHECK: gradients differ by at most {{[0-9.]+(e-1[3-9])?}}, losses of {{[13]}} steps by {{[0-9.]+(e-1[0-9])?}}; activations alive: 4 4
schedule waves(P: int = 2, M: int = 4) {
  require M % 2 == 0, "microbatches come in pairs";
  ranks P;
  microbatches M;
  placement v;
  edge stage 0 -> stage 2 * P - 1;

  on rank r {
    repeat M / 2 {
      for c in 0 .. 2 { repeat 2 { F(c); } }
      for c in 0 .. 2 { repeat 2 { I(1 - c); } }
      repeat 4 { W; }
    }
  }
}
