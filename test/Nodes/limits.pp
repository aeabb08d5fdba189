// Layers, nodes and arrows have a limit, that of the actions or 2^20; what loops of graphs run counts as steps.
// RUN: not ppcc %s --max-actions=200 -D L=30 2>&1 | FileCheck %s
// RUN: ppcc %s --max-actions=200 -D L=20 --emit=nodes -o - | count 2
// RUN: not ppcc %s -D L=1000000 2>&1 | FileCheck %s --check-prefix=MOST
// RUN: not ppcc %s -D L=9223372036854775807 2>&1 | FileCheck %s --check-prefix=MOST
// RUN: not ppcc %s -D L=0 -D S=9223372036854775807 --max-actions=1000 2>&1 | FileCheck %s --check-prefix=STEPS
// CHECK: limits.pp:[[#@LINE+7]]:3: error: the graphs of the stages have {{20[1-9]}} layers, nodes and arrows, more than the limit of 200 [E0446]
// MOST: limits.pp:[[#@LINE+6]]:{{[0-9]+}}: error: the graphs of the stages have {{[0-9]+}} layers, nodes and arrows, more than the limit of 1048576 [E0446]
// STEPS: error: gave up after 5000 steps of the schedule [E0413]
schedule deep(L: int = 2, S: int = 0) {
  ranks 2; microbatches 1; placement linear;
  backward when false;
  layer expert { F: a @ comp -> b @ comm -> c @ comp -> d @ comm; }
  stage graph s { for i in 0 .. S { } repeat L { layer expert; } F: per layer; }
  on rank r { F; }
}
