// Pipes of a loop are made after the head; conditions of ranks come later.
// RUN: not ppcc check %s --schedule=early 2>&1 | FileCheck %s
// RUN: ppcc check %s --schedule=late
schedule early(P: int = 2, M: int = 2) {
  ranks P;
  for i in 0 .. 2 { pipe q { stages P; stage s on rank s; microbatches M * i .. M * (i + 1); } }
  // CHECK: loop-pipes-in-head.pp:[[#@LINE+1]]:15: error: unknown name `q`: a loop makes these pipes after the head, for the bodies of ranks
  let n = len(q);
  on rank r { for p in 0 .. 2 { repeat M { F(q[p]); } } for p in 0 .. 2 { repeat M { B(q[p]); } } }
}

schedule late(P: int = 2, M: int = 2) {
  ranks P;
  for i in 0 .. 2 { pipe q { stages P; stage s on rank s; microbatches M * i .. M * (i + 1); } }
  on rank r where len(q) == 2 { for p in 0 .. 2 { repeat M { F(q[p]); } } for p in 0 .. 2 { repeat M { B(q[p]); } } }
}
