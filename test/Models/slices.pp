// Slices of sequences: gradients go from the last slice of each to the first.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s --match-full-lines
// RUN: ppcc %s -o %t.json && grep -q '"slices": 3' %t.json
// RUN: ppcc-run %t.json | FileCheck %s --check-prefix=GRADIENTS
// RUN: ppcc %s --emit=cpp -o %t.cpp && %cxx -O0 -shared -fPIC %t.cpp -o %t.so
// RUN: ppcc-run %t.so:ppcc_sliced | FileCheck %s --check-prefix=GRADIENTS
// RUN: ppcc %t.json --from=json --emit=ir | FileCheck %s --check-prefix=IR
// RUN: ppcc %s --emit=ir | ppcc - --passes=verify --emit=ir | FileCheck %s --check-prefix=IR
// CHECK:      rank 0: 0F0 0F1 0F2 0F3 0B2 0B1 0F4 0F5 0I0 0I5 0B4 0B3 0W0 0W5
// CHECK-NEXT: rank 1: 1F0 1F1 1F2 1B2 1B1 1F3 1F4 1F5 1I0 1I5 1B4 1B3 1W0 1W5
// GRADIENTS: 1 programs, 0 layers exact, 4 in another order, 0 failed
// IR: {"name": "main", "microbatches": [0,6], "rank_of_stage": [0, 1], "skip_edges": [], "slices": 3}
schedule sliced(M: int = 2) {
  ranks 2;
  microbatches M * 3;
  slices 3;
  placement linear;
  on rank r {
    repeat 3 { F; }
    if r == 0 { F; }
    repeat 2 { B; }
    repeat r == 0 ? 2 : 3 { F; }
    repeat 2 { I; }
    repeat 2 { B; }
    drain W;
  }
}
