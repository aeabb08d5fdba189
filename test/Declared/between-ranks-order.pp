// Far ends stand behind what they follow, and messages go around them, where times are equal, too.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s --match-full-lines
// RUN: ppcc %s --transport=posted,stream,rendezvous,stream-per-edge --check
// RUN: ppcc %s --cost B=0 --cost LOAD=0 --transport=posted,stream,rendezvous,stream-per-edge --check
// RUN: sed 's/lane peer/lane comm/' %s > %t.pp
// RUN: ppcc %t.pp --transport=stream,rendezvous --check
// RUN: ppcc %t.pp --comm-order=sweep --transport=stream,rendezvous --check
// RUN: ppcc %t.pp --cost F=1 --cost EVICT=1 --transport=stream,rendezvous --check
// RUN: ppcc %t.pp --cost F=1 --cost EVICT=1 --comm-order=sweep --transport=stream,rendezvous --check
action EVICT { to rank ranks - 1 - r for rank r; lane peer; after F; }
action LOAD  { from rank ranks - 1 - r for rank r; lane back; after EVICT; before B; }
schedule s(P: int = 2, M: int = 3) {
  ranks P; microbatches M; placement linear;
  insert EVICT after F;
  insert LOAD before B by 2;
  model { cost F = 0; cost B = 1; cost EVICT = 0; cost LOAD = 1; }
  // CHECK:      rank 0: {{.*}}1EVICT0>0 1EVICT1>0 1LOAD0<0 {{.*}}1LOAD1<0 1EVICT2>0 {{.*}}1LOAD2<0 0B0 0B1 0B2
  // CHECK-NEXT: rank 1: 1F0 0EVICT0>1 0EVICT1>1 0LOAD0<1 {{.*}}0LOAD1<1 0EVICT2>1 {{.*}}0LOAD2<1 {{.*}}
  on rank r { repeat M { F; } repeat M { B; } }
}

// The far end of what follows a message stays where it is; only the near one moves behind the message.
// RUN: sed 's/after F; }/after SEND_F; }/; s/insert EVICT after F/& for rank r when r == 0/; s/by 2/for rank r when r == 0/' %s > %t.sent.pp
// RUN: ppcc %t.sent.pp -D P=4 --check

// What was read may go in another order on each rank, one lane beside the other; messages are placed all the same.
// RUN: ppcc %s --comm-order=none --emit=ir -o %t.ir
// RUN: sed '/^rank 1/,$s/\(0LOAD0<1@4\) \(1EVICT0>0@3\)/\2 \1/' %t.ir > %t.crossed.ir && not diff -q %t.ir %t.crossed.ir
// RUN: ppcc %t.crossed.ir --check --passes=verify,inject-comm,verify-matching,verify-transport --comm-order=sweep
// RUN: ppcc %t.crossed.ir --check --passes=verify,inject-comm,verify-matching,verify-transport --comm-order=ready-time
