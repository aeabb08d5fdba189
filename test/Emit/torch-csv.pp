// PyTorch's compute_comms: rows are ranks, without blanks; REDUCE_GRAD stands behind a stage's last backward and its sends.
// RUN: ppcc %s --emit=torch-csv | FileCheck %s --match-full-lines --strict-whitespace
// RUN: ppcc %s --emit=torch-csv --torch-version=2.9 | FileCheck %s --check-prefix=OLD --match-full-lines --strict-whitespace
// RUN: ppcc %s --emit=torch-csv-compute | FileCheck %s --check-prefix=COMPUTE --match-full-lines --strict-whitespace
// RUN: ppcc %s --emit=torch-csv-compute --comm-order=none | FileCheck %s --check-prefix=COMPUTE --match-full-lines --strict-whitespace
schedule split() {
  ranks 2;
  microbatches 1;
  placement linear;
  on rank r { if r == 0 { F; I; W; } else { F; B; } }
}
//          CHECK:0F0,0SEND_F0,0RECV_B0,0I0,0W0,0REDUCE_GRAD
//     CHECK-NEXT:1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD
//      CHECK-NOT:{{.}}
//            OLD:0F0,0SEND_F0,0RECV_B0,0I0,0W0
//       OLD-NEXT:1RECV_F0,1F0,1B0,1SEND_B0
//        OLD-NOT:{{.}}
//        COMPUTE:0F0,0I0,0W0
//   COMPUTE-NEXT:1F0,1B0
//    COMPUTE-NOT:{{.}}
