// By cost, over four stages and over two layers of different cost: the longest stage takes 4.
// RUN: ppcc %s --comm-order=none --emit=ir | FileCheck %s
// CHECK: layout "tt|tuu|tt|t"
// CHECK: cost F "main" [4 4 4 2]
schedule by_cost() {
  ranks 4; microbatches 1; placement linear;
  model {
    layer t { cost F = 2; }
    layer u { cost F = 1; }
    layers t * 3, u * 2, t * 3 by cost;
  }
  on rank r { F; B; }
}
