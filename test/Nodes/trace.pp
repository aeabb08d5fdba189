// With times of nodes a trace has a thread for each lane, and a slice for each node that takes time.
// RUN: ppcc %s:lanes --emit=trace -o %t.json
// RUN: FileCheck %s --implicit-check-not=recv < %t.json
// RUN: %python %ppcc_src_root/test/utils/check-trace.py %t.json | FileCheck %s --check-prefix=COUNTS
// Without them it has none.
// RUN: ppcc %s:plain --emit=trace | FileCheck %s --check-prefix=PLAIN --implicit-check-not=comp\" --implicit-check-not=F0.a
// An arrow ends where what it brings is needed, which may be later than the begin of its group.
// RUN: ppcc %s:hooks --emit=trace -o %t.hooks.json
// RUN: FileCheck %s --check-prefix=HOOKS < %t.hooks.json
// RUN: %python %ppcc_src_root/test/utils/check-trace.py %t.hooks.json

//     CHECK: "pid":0,"tid":500,"name":"thread_name","args":{"name":"comp"}}
// CHECK-NEXT: "pid":0,"tid":500,"name":"thread_sort_index","args":{"sort_index":500}}
// CHECK-NEXT: "pid":0,"tid":501,"name":"thread_name","args":{"name":"comm"}}
//     CHECK: "pid":0,"tid":500,"ts":0,"dur":1000,"name":"0F0.embed","cat":"F","args":{"stage":0,"microbatch":0,"action":"0F0"}}
//     CHECK: "pid":1,"tid":0,"ts":5500,"dur":6000,"name":"1F1"
// CHECK-NEXT: "pid":1,"tid":1,"ts":5500,"dur":6000,"name":"1B0"
//     CHECK: "pid":1,"tid":501,"ts":5500,"dur":2000,"name":"1B0.L0.b","cat":"B","args":{"stage":1,"microbatch":0,"layer":0,"action":"1B0"}}
//     CHECK: "pid":1,"tid":500,"ts":9500,"dur":1000,"name":"1W0.L0.a","cat":"W","args":{"stage":1,"microbatch":0,"layer":0,"action":"1B0"}}
// COUNTS: 34 slices on 8 threads of 2 ranks, 4 arrows, 16 counters

// PLAIN: "name":"0F0"

//     HOOKS: "ts":14500,"dur":3000,"name":"0F7"
// HOOKS-NEXT: "ts":14500,"dur":3000,"name":"0B0"
//     HOOKS: "ts":15500,"dur":1000,"name":"0B0.mlp"
//     HOOKS: "ph":"f","pid":0,"tid":1,"ts":15500,

schedule lanes() {
  ranks 2; microbatches 2; placement linear;
  model {
    layer expert {
      F: a @ comp -> b @ comm;
      B: b @ comm -> a @ comp;
      B: a -> W.a @ comp;
      cost F.a = 2; cost F.b = 1; cost B.a = 1; cost W.a = 1; cost B.b = 2;
    }
    layer enter { F: recv @ comp -> embed @ comp; B: embed @ comp; }
    layer leave { B: recv @ comp; }
    layers enter, leave, enter, expert;
    overlap F, B { B.recv; F.recv; F.embed; each expert { B.b; F.a; B.a; F.b; W.a; } B.embed; }
    cost F.embed = 1; cost B.embed = 1;
  }
  cluster { latency = 0.5; }
  on rank r {
    if r == 0 { F; F; B; B; } else { F; overlap { F; B; } B; }
  }
}
schedule plain() {
  ranks 1; microbatches 1; placement linear;
  backward when false;
  model { layer l { F: a @ comp; } layers l; }
  on rank r { F; }
}
schedule hooks() {
  ranks 4; microbatches 8; placement linear;
  model {
    layer all {
      F: recv @ comp -> mlp @ comp -> send @ comm;
      B: recv @ comp -> mlp @ comp -> send @ comm;
      B: mlp -> W.mlp @ comp;
    }
    layers all, all, all, all;
    overlap F, B { F.recv; F.mlp; F.send; B.recv; B.mlp; B.send; W.mlp; }
    cost F.mlp = 1; cost B.mlp = 1; cost W.mlp = 1;
  }
  cluster { latency = 0.5; }
  on rank r {
    let w = 2 * (3 - r) + 1;
    repeat w     { F; }
    repeat 8 - w { overlap { F; B; } }
    repeat w     { B; }
  }
}
