// Without an edge between ranks there is nothing to send, so a program without messages is complete.
// RUN: ppcc %s --emit=torch-csv --comm-order=none | FileCheck %s --match-full-lines --strict-whitespace
schedule alone() {
  ranks 1;
  microbatches 1;
  placement loop(2);
  on rank r { F(0); F(1); B(1); B(0); }
}
//     CHECK:0F0,1F0,1B0,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,0B0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD
// CHECK-NOT:{{.}}
