// Without a pattern, nodes take turns by list scheduling: the longest way to the end first, and no lane waits while it could run.
// RUN: ppcc %s --emit=nodes -o - | FileCheck %s --check-prefix=UNITS
// RUN: ppcc %s --cost=F.a=1 --cost=F.c=3 --cost=B.a=1 --cost=B.b=9 --emit=nodes -o - | FileCheck %s --check-prefix=COSTS
// RUN: ppcc %s --cost=F.a=1 --cost=F.c=3 --cost=B.a=1 --cost=B.b=9 --emit=times -o - | FileCheck %s --check-prefix=TIMES
schedule two() {
  ranks 1;
  pipe x { placement linear; microbatches 0 .. 1; }
  pipe y { placement linear; microbatches 1 .. 2; }
  model {
    layer l {
      F: a @ comp -> b @ comm -> c @ comp;
      B: a @ comp -> b @ comp;
    }
    layers l;
  }
  // UNITS: rank 0: {comp:0F0.a comm:0F0.b comp:0F0.c} {comp:0F1.a comm:0F1.b comp:0B0.a comp:0F1.c comp:0B0.b} {comp:0B1.a comp:0B1.b}
  // COSTS: rank 0: {comp:0F0.a comm:0F0.b comp:0F0.c} {comp:0B0.a comp:0B0.b comp:0F1.a comm:0F1.b comp:0F1.c} {comp:0B1.a comp:0B1.b}
  on rank r { F(x); overlap { F(y); B(x); } B(y); }
  // TIMES: 0,0F0,,0,4
  // TIMES: 0,0F1,0,4,18
  // TIMES: 0,0B0,0,4,18
  // TIMES: 0,0B1,,18,28
}
