// What an action made leaves at its `send`, and what it reads is needed at its `recv`: nodes beside these overlap the way between.
// RUN: ppcc %s --cost=latency=1 --emit=times | FileCheck %s --check-prefix=DATA
// RUN: ppcc %s --cost=latency=1 --transport=stream --emit=times | FileCheck %s --check-prefix=STREAM
// RUN: ppcc %s --emit=nodes | FileCheck %s --check-prefix=NODES
// RUN: ppcc %s --emit=nodes-comm | FileCheck %s --check-prefix=COMM
// RUN: ppcc %s --cost=latency=1 --emit=report | FileCheck %s --check-prefix=PATH
// RUN: sed 's/cost F.rest = 3/cost F.rest = 9/' %s > %t.rest.pp
// RUN: ppcc %t.rest.pp --emit=report | FileCheck %s --check-prefix=STAYS
// RUN: sed 's/cost F.first/cost F.send = 0.5; cost F.recv = 0.25; cost F.first/' %s > %t.pp
// RUN: ppcc %t.pp --cost=latency=1 --emit=times | FileCheck %s --check-prefix=TIMED
// RUN: ppcc %s --cost=latency=1 --emit=svg --arrows -o %t.svg && %python %ppcc_src_root/test/utils/check-svg.py %t.svg arrows=2
// RUN: ppcc %s --cost=latency=1 --emit=svg --arrows --time-range=1..8 -o %t.svg && %python %ppcc_src_root/test/utils/check-svg.py %t.svg arrows=2
// RUN: ppcc %s --cost=latency=1 --emit=svg --arrows --time-range=2..8 -o %t.svg && %python %ppcc_src_root/test/utils/check-svg.py %t.svg arrows=1
// RUN: ppcc %s --cost=latency=1 --emit=svg --arrows --time-range=0..6 -o %t.svg && %python %ppcc_src_root/test/utils/check-svg.py %t.svg arrows=1
// RUN: ppcc %s --emit=ir -o %t.ir
// RUN: ppcc %t.ir --passes=verify-transport --emit=ir | diff %t.ir -
// RUN: ppcc %s -o %t.json
// RUN: ppcc %t.json --emit=nodes-comm | FileCheck %s --check-prefix=COMM
// RUN: ppcc %t.ir --from=ir --cost=latency=1 --emit=times | FileCheck %s --check-prefix=DATA

// Rank 0 gives its output at 1 and ends at 4; rank 1 needs it half a unit after its begin, so it begins at 1.5. Its gradient leaves at
// the end, for want of a `send`, and is there at 6.
// DATA-DAG: 0,0F0,,0,4
// DATA-DAG: 0,0B0,,6,8
// DATA-DAG: 1,1F0,,1.5,3
// DATA-DAG: 1,1B0,,3,5
// STREAM-DAG: 0,0F0,,0,4
// STREAM-DAG: 0,0SEND_F0,,1,2
// STREAM-DAG: 0,0B0,,6,8
// STREAM-DAG: 1,1F0,,1.5,3

// Where the hooks take time, the output leaves at the end of `send`, and is needed at the begin of `recv`.
// TIMED-DAG: 0,0F0,,0,4
// TIMED-DAG: 0,0SEND_F0,,1.5,2.5
// TIMED-DAG: 1,1F0,,2,3.75

// NODES: rank 0: {comp:0F0.make comp:0F0.rest} {comp:0B0.make}
// NODES-NEXT: rank 1: {comp:1F0.first comp:1F0.make} {comp:1B0.make}
// COMM: rank 0: {comp:0F0.make comp:0F0.rest comm:0SEND_F0} {comp:0RECV_B0 comp:0B0.make}
// COMM-NEXT: rank 1: {comp:1F0.first comp:1RECV_F0 comp:1F0.make} {comp:1B0.make}

// The path leaves rank 0 at 1.
// Where the path stays on its rank it leaves at the end.
// STAYS:      critical path: 12 of actions, 0 of messages
// STAYS:      0 12 0 2 0F0 0B0
// PATH: critical path: 6 of actions, 2 of messages
// PATH: 0 1 0 1 0F0
// PATH-NEXT: 1 5 1 3 1RECV_F0 ... 1B0
// PATH-NEXT: 5 8 0 2 0RECV_B0 0B0
schedule hooks() {
  ranks 2; microbatches 1; placement linear;
  model {
    layer first {
      F: make @ comp -> send @ comm;
      F: make -> rest @ comp;
      B: recv @ comp -> make @ comp;
    }
    layer second {
      F: first @ comp -> recv @ comp -> make @ comp;
      B: make @ comp;
    }
    layers first, second;
    cost F.first = 0.5; cost F.make = 1; cost F.rest = 3; cost B.make = 2;
  }
  on rank r { F; B; }
}
