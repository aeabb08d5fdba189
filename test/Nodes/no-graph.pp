// An action without a graph cannot be shown by its nodes; its time is that of its kind.
// RUN: not ppcc %s --emit=nodes 2>&1 | FileCheck %s
// RUN: not ppcc gpipe --emit=nodes 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: ppcc %s --emit=times -o - | FileCheck %s --check-prefix=TIMES
// CHECK: no-graph.pp:[[#@LINE+10]]:18: error: stage 0 has no graph for `B` [E1030]
// NONE: error: stage 0 has no graph for `F` [E1030]
schedule half() {
  ranks 1; microbatches 1; placement linear;
  model {
    layer l { F: a @ comp -> b @ comm; }
    layers l;
    cost F.a = 0.25; cost F.b = 0.5; cost B = 7; cost F = 100;
  }
  // TIMES: 0,0F0,,0,0.75
  on rank r { F; B; }
  // TIMES: 0,0B0,,0.75,7.75
}
