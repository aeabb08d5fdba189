// Without a backward there are no gradients to reduce.
// RUN: ppcc %s --emit=torch-csv | FileCheck %s --match-full-lines --strict-whitespace
schedule forward() {
  ranks 2;
  microbatches 1;
  placement linear;
  backward when false;
  on rank r { F; }
}
//      CHECK:0F0,0SEND_F0
// CHECK-NEXT:1RECV_F0,1F0
//  CHECK-NOT:{{.}}
