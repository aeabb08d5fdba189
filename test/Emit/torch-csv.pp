// PyTorch's compute_comms: rows are ranks, without blanks; REDUCE_GRAD stands behind a stage's last backward and its sends.
// Since 2.15 a rank says when it waits for a send: a forward's when the stage's backward has run, the others' at the end.
// RUN: ppcc %s --emit=torch-csv | FileCheck %s --match-full-lines --strict-whitespace
// RUN: ppcc %s --emit=torch-csv --torch-version=2.14.1 | FileCheck %s --check-prefix=SILENT --match-full-lines --strict-whitespace
// RUN: ppcc %s --emit=torch-csv --torch-version=2.10 | FileCheck %s --check-prefix=SILENT --match-full-lines --strict-whitespace
// RUN: ppcc %s --emit=torch-csv --torch-version=2.9 | FileCheck %s --check-prefix=OLD --match-full-lines --strict-whitespace
// RUN: ppcc %s --emit=torch-csv-compute | FileCheck %s --check-prefix=COMPUTE --match-full-lines --strict-whitespace
// RUN: ppcc %s --emit=torch-csv-compute --comm-order=none | FileCheck %s --check-prefix=COMPUTE --match-full-lines --strict-whitespace
schedule split() {
  ranks 2;
  microbatches 1;
  placement linear;
  on rank r { if r == 0 { F; I; W; } else { F; B; } }
}
//          CHECK:0F0,0SEND_F0,0RECV_B0,0I0,0WAIT_SEND_F0,0W0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD
//     CHECK-NEXT:1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1WAIT_SEND_B0
//      CHECK-NOT:{{.}}
//         SILENT:0F0,0SEND_F0,0RECV_B0,0I0,0W0,0REDUCE_GRAD
//    SILENT-NEXT:1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD
//     SILENT-NOT:{{.}}
//            OLD:0F0,0SEND_F0,0RECV_B0,0I0,0W0
//       OLD-NEXT:1RECV_F0,1F0,1B0,1SEND_B0
//        OLD-NOT:{{.}}
//        COMPUTE:0F0,0I0,0W0
//   COMPUTE-NEXT:1F0,1B0
//    COMPUTE-NOT:{{.}}
