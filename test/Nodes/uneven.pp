// The pairs of layers come first, the surplus of either action alone behind them; `last` comes at the very end.
// RUN: ppcc %s -D few=1 -D many=3 --emit=nodes -o - | FileCheck %s --check-prefix=FORWARD
// RUN: ppcc %s -D few=3 -D many=1 --emit=nodes -o - | FileCheck %s --check-prefix=BACKWARD
// RUN: ppcc %s -D few=0 -D many=1 --emit=nodes -o - | FileCheck %s --check-prefix=EMPTY
schedule uneven(few: int = 1, many: int = 3) {
  ranks 1; microbatches 2; placement loop(2);
  model {
    layer one {
      F: a @ comp -> b @ comm;
      B: b @ comm -> a @ comp -> W.a @ comp;
    }
    layer enter { F: enter @ comp; B: leave @ comp; }
    layer leave { F: leave @ comp; }
    part a { layers enter, one * few, leave; stages 1; }
    part b { layers enter, one * many, leave; reads a; }
    overlap F, B {
      F.enter;
      each one { B.b; F.a; B.a; F.b; W.a; }
      last W.a; F.leave; B.leave;
    }
  }
  // FORWARD: {comp:1F1.enter comm:0B0.L0.b comp:1F1.L0.a comp:0B0.L0.a comm:1F1.L0.b comp:1F1.L1.a comm:1F1.L1.b comp:1F1.L2.a comm:1F1.L2.b comp:0W0.L0.a comp:1F1.leave comp:0B0.leave}
  // BACKWARD: {comp:1F1.enter comm:0B0.L2.b comp:1F1.L0.a comp:0B0.L2.a comm:1F1.L0.b comp:0W0.L2.a comm:0B0.L1.b comp:0B0.L1.a comp:0W0.L1.a comm:0B0.L0.b comp:0B0.L0.a comp:0W0.L0.a comp:1F1.leave comp:0B0.leave}
  // EMPTY: rank 0: {comp:0F0.enter comp:0F0.leave} {{.*}} {comp:0F1.enter comp:0F1.leave} {comp:1F1.enter comp:1F1.L0.a comm:1F1.L0.b comp:1F1.leave comp:0B0.leave}
  on rank r { F(a); F(b); B(b); F(a); overlap { F(b); B(a); } B(b); B(a); }
}
