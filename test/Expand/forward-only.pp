// backward when false makes a program of forwards; its condition may use what stands before it.
// RUN: ppcc %s --comm-order=sweep --emit=actions | FileCheck %s
// RUN: ppcc %s -D train=true --comm-order=sweep --emit=actions | FileCheck %s --check-prefix=TRAIN

schedule s(train: bool = false) {
  ranks 2; microbatches 1; placement linear;
  let wanted = train and 1 < 2;
  backward when wanted;
  // CHECK:      rank 0: 0F0 0SEND_F0{{$}}
  // CHECK-NEXT: rank 1: 1RECV_F0 1F0{{$}}
  // TRAIN:      rank 0: 0F0 0SEND_F0 0RECV_B0 0B0
  on rank r { F; if train { B; } defer W { drain W; } }
}
