// Factors by microbatch are of one number of microbatches, so no file for all of them can hold them.
// RUN: not ppcc %s --for M -o %t.json 2>&1 | FileCheck %s
// RUN: not ppcc %s --for M --emit=cpp 2>&1 | FileCheck %s
// RUN: ppcc %s --cost F=2 -D M=3 --check
// CHECK: error: there is no program for all `M`: the factors of `scale` are known for one number of microbatches only [E1203]
schedule s(M: int = 4) {
  ranks 1; microbatches M; placement linear;
  model { scale time microbatch m = m % 2 == 0 ? 1 : 2; }
  on rank r { repeat M { F; } repeat M { B; } }
}
