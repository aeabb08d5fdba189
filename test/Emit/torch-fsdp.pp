// What FSDP does with parameters: three stages are gathered at a time, each anew when it comes into the window; its gradients
// are reduced behind its last backward, and its sends. Messages that came meanwhile stay in front.
// RUN: ppcc %s --emit=torch-csv --torch-fsdp --torch-version=2.10 --comm-order=sweep | FileCheck %s --match-full-lines --strict-whitespace
// RUN: ppcc %s --emit=torch-csv --torch-fsdp --torch-version=2.9 --comm-order=sweep | FileCheck %s --check-prefix=OLD
// RUN: ppcc %s --emit=torch-csv --torch-fsdp --comm-order=late | FileCheck %s --check-prefix=LATE --match-full-lines --strict-whitespace
// RUN: ppcc %s --emit=torch-csv --torch-fsdp | ppcc - --from=csv --check 2>&1 | FileCheck %s --check-prefix=READ
// RUN: not ppcc %s --emit=torch-csv-compute --torch-fsdp 2>&1 | FileCheck %s --check-prefix=USAGE
schedule four() {
  ranks 2;
  pipe main { stages 5; stage s on rank s / 4; microbatches 0 .. 1; }
  on rank r {
    if r == 0 { F(0); F(1); F(2); F(3); B(3); B(2); B(1); B(0); } else { F; B; }
  }
}
//      CHECK:0UNSHARD,1UNSHARD,2UNSHARD,0F0,0RESHARD,3UNSHARD,1F0,2F0,3F0,3SEND_F0,3RECV_B0,3B0,3REDUCE_GRAD,3RESHARD,0UNSHARD,2B0,2REDUCE_GRAD,2RESHARD,1B0,1REDUCE_GRAD,1RESHARD,0B0,0REDUCE_GRAD,0RESHARD
// CHECK-NEXT:4UNSHARD,4RECV_F0,4F0,4B0,4SEND_B0,4REDUCE_GRAD,4RESHARD
//  CHECK-NOT:{{.}}
// OLD: 3B0,3RESHARD,0UNSHARD,2B0
// OLD-NOT: REDUCE
//       LATE:0UNSHARD,1UNSHARD,2UNSHARD,0F0,0RESHARD,3UNSHARD,1F0,2F0,3F0,3SEND_F0,3RECV_B0,3B0,3WAIT_SEND_F0,3REDUCE_GRAD,3WAIT_REDUCE_GRAD,3RESHARD,0UNSHARD,2B0,2REDUCE_GRAD,2WAIT_REDUCE_GRAD,2RESHARD,1B0,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1RESHARD,0B0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD
//  LATE-NEXT:4UNSHARD,4RECV_F0,4F0,4B0,4SEND_B0,4REDUCE_GRAD,4WAIT_REDUCE_GRAD,4RESHARD,4WAIT_SEND_B0
//   LATE-NOT:{{.}}
// READ: warning: ignoring `0UNSHARD` and 11 like it
// READ-NOT: error
// USAGE: --torch-fsdp: it is for --emit=torch-csv
