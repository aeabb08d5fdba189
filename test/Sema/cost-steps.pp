// Costs that differ from stage to stage count as steps.
// RUN: not ppcc %s --max-actions=1000 2>&1 | FileCheck %s
schedule s() {
  ranks 1;
  pipe a { stages 500; stage s on rank 0; microbatches 1; }
  model {
    cost F stage s = 1;
    cost B stage s = 1;
    cost I stage s = 1;
    cost W stage s = 1;
    cost F pipe a stage s = 1;
    cost B pipe a stage s = 1;
    cost I pipe a stage s = 1;
    cost W pipe a stage s = 1;
    cost F pipe a = 1;
    // CHECK: error: stopped after 5000 steps of the schedule [E0413]
  }
  on rank r {
    for s in 0 .. 500 { F(s); }
    for s in 0 .. 500 { B(499 - s); }
  }
}
