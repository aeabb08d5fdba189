// Edge loops; an edge to the next stage is there already, and one that is given twice is one.
// RUN: ppcc %s --emit=json | FileCheck %s
// RUN: ppcc %s --comm-order=sweep --emit=actions | FileCheck %s --check-prefix=ACTIONS

schedule s(P: int = 5) {
  ranks P; microbatches 1; placement linear;
  edge stage 0 -> stage 1;
  edge stage 0 -> stage 2;
  // CHECK: "skip_edges": [{{\[}}0,2], [0,3], [0,4], [1,3], [1,4]]
  // ACTIONS: rank 4: 4RECV_F0<0 4RECV_F0<1 4RECV_F0 4F0 4B0 4SEND_B0>0 4SEND_B0>1 4SEND_B0
  for i in 0 .. 2 {
    for j in i + 2 .. 4 { edge stage i -> stage j; }
    edge stage i -> stage 4;
  }
  on rank r { F; B; }
}
