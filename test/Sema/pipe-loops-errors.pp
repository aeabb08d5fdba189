// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
schedule s() {
  ranks 2;
  for i in 0 .. 2 {
    pipe p { placement linear; microbatches i .. i + 1; }
    // CHECK: pipe-loops-errors.pp:[[#@LINE+1]]:5: error: `edge` is not allowed in a loop over pipes [E0350]
    edge stage 0 -> stage 1;
  }
  // CHECK: pipe-loops-errors.pp:[[#@LINE+1]]:26: error: unknown name `p` [E0301]
  cluster { latency pipe p = 1; }
  on rank r { F(p[0]); }
}
