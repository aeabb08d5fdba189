// Layers, nodes and arrows have a limit, that of the actions or 2^20.
// RUN: not ppcc %s --max-actions=200 -D L=60 2>&1 | FileCheck %s
// RUN: ppcc %s --max-actions=200 -D L=40 --emit=nodes -o - | count 2
// RUN: not ppcc %s -D L=1000000 2>&1 | FileCheck %s --check-prefix=MOST
// RUN: not ppcc %s -D L=9223372036854775807 2>&1 | FileCheck %s --check-prefix=BEYOND
// CHECK: limits.pp:[[#@LINE+5]]:3: error: the graphs of the stages have {{20[1-9]}} layers, nodes and arrows, more than the limit of 200 [E0446]
// MOST: limits.pp:[[#@LINE+4]]:{{[0-9]+}}: error: the graphs of the stages have {{[0-9]+}} layers, nodes and arrows, more than the limit of 1048576 [E0446]
schedule deep(L: int = 4) {
  ranks 2; microbatches 1; placement linear;
  backward when false;
  model {
    layer expert { F: a @ comp -> b @ comm -> c @ comp -> d @ comm; }
    // BEYOND: limits.pp:[[#@LINE+1]]:21: error: the number of layers is 9223372036854775807, but must be in 0..1048576 [E0405]
    layers expert * L;
  }
  on rank r { F; }
}
