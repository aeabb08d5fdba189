// The tree of everything that stands in a file and in the head of a schedule.
// RUN: ppcc %s --emit=ast | FileCheck %s --match-full-lines --strict-whitespace

import "gpipe.pp";
fn f(x, y: float) = x + y;
block b(n, p: pipe) { repeat n { F(p); } }

schedule s(P: int = 2, M: int = 2 * P, deep: bool = P > 2, share: float = 1e-3) {
  let half = P / 2;
  require half > 0, "needs two";
  require M > 0;
  ranks P;
  backward when deep or not deep;
  pipe down {
    microbatches 0 .. M / 2 pad P;
    placement loop(V * 2);
  }
  pipe up {
    microbatches M;
    stages P;
    stage s on rank P - 1 - s;
    edge stage 0 -> stage P - 1;
    for i in 0 .. P { for j in i + 2 .. P { edge stage i -> stage j; } }
  }
  fn g() = 1;
  block c() { }
  model { cost F = 1.5; cost overlap pipe up stage s = s / 2; }
  cluster { limit = 80; latency = 0.1; transport stream-per-edge, buffered:4; }
  comm { order none; prefetch 2; }
  on rank r { }
}
//      CHECK:File
// CHECK-NEXT:  Import "gpipe.pp"
// CHECK-NEXT:  Function f = x + y
// CHECK-NEXT:    Parameter x
// CHECK-NEXT:    Parameter y: float
// CHECK-NEXT:  Block b
// CHECK-NEXT:    Parameter n
// CHECK-NEXT:    Parameter p: pipe
// CHECK-NEXT:    Repeat n
// CHECK-NEXT:      Action F p
// CHECK-NEXT:  Schedule s
// CHECK-NEXT:    Parameter P: int = 2
// CHECK-NEXT:    Parameter M: int = 2 * P
// CHECK-NEXT:    Parameter deep: bool = P > 2
// CHECK-NEXT:    Parameter share: float = 0.001
// CHECK-NEXT:    Let half = P / 2
// CHECK-NEXT:    Require half > 0 "needs two"
// CHECK-NEXT:    Require M > 0
// CHECK-NEXT:    Ranks P
// CHECK-NEXT:    Backward when deep or not deep
// CHECK-NEXT:    Pipe down
// CHECK-NEXT:      Microbatches 0 .. M / 2 pad P
// CHECK-NEXT:      Placement loop V * 2
// CHECK-NEXT:    Pipe up
// CHECK-NEXT:      Microbatches M
// CHECK-NEXT:      Stages P
// CHECK-NEXT:      StageMap s -> P - 1 - s
// CHECK-NEXT:      Edge 0 -> P - 1
// CHECK-NEXT:      EdgeLoop i in 0 .. P
// CHECK-NEXT:        EdgeLoop j in i + 2 .. P
// CHECK-NEXT:          Edge i -> j
// CHECK-NEXT:    Function g = 1
// CHECK-NEXT:    Block c
// CHECK-NEXT:    Model
// CHECK-NEXT:      Setting cost F = 1.5
// CHECK-NEXT:      Setting cost overlap pipe up stage s = s / 2
// CHECK-NEXT:    Cluster
// CHECK-NEXT:      Setting limit = 80
// CHECK-NEXT:      Setting latency = 0.1
// CHECK-NEXT:      Setting transport stream-per-edge, buffered:4
// CHECK-NEXT:    Comm
// CHECK-NEXT:      Setting order none
// CHECK-NEXT:      Setting prefetch 2
// CHECK-NEXT:    OnRank r
