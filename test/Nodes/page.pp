// A page has each order of nodes once, for the boxes of all ranks; what takes no time has no place in it.
// RUN: ppcc %s --emit=html -o %t.html
// RUN: %python %S/Inputs/page_nodes.py %t.html | FileCheck %s --match-full-lines
schedule page() {
  ranks 3; microbatches 2; placement linear; backward when false;
  model {
    layer l { F: a @ comp -> b @ comm -> c @ comp; }
    layers l * 3;
    cost F.a = 2; cost F.c = 1;
    scale microbatch m = 1 + m;
  }
  on rank r { F; F; }
}
//      CHECK: rows 0 4 10 14
// CHECK-NEXT: order 0 -1 1 -1 -1 0 -1 -1 1 -1 -1 0 -1 1
// CHECK-NEXT: begin 0 2 4
// CHECK-NEXT: node 0 0 0 0 0 0 2
// CHECK-NEXT: node 0 0 0 2 0 2 3
// CHECK-NEXT: node 0 0 0 0 0 0 4
// CHECK-NEXT: node 0 0 0 2 0 4 6
