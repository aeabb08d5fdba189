// The pipes of a loop are there once the head is evaluated and the loop has run: for the pipes below it, costs and ranks.
// RUN: not ppcc check %s:early 2>&1 | FileCheck %s
// RUN: not ppcc check %s:called 2>&1 | FileCheck %s --check-prefix=CALLED
// RUN: not ppcc check %s:counts 2>&1 | FileCheck %s --check-prefix=COUNTS --implicit-check-not=error:
// RUN: not ppcc check %s:forwards 2>&1 | FileCheck %s --check-prefix=FORWARDS --implicit-check-not=error:
// RUN: not ppcc check %s:denies 2>&1 | FileCheck %s --check-prefix=DENIES --implicit-check-not=error:
// RUN: ppcc %s:late --emit=ir | FileCheck %s --check-prefix=LATE
// RUN: not ppcc prove %s:sometimes | FileCheck %s --check-prefix=PROVE
// RUN: ppcc prove %s:proven | FileCheck %s --check-prefix=PROVEN

schedule early(P: int = 2, M: int = 2) {
  ranks P;
  for i in 0 .. 2 { pipe q { stages P; stage s on rank s; microbatches M * i .. M * (i + 1); } }
  // CHECK:      loop-pipes-in-head.pp:[[#@LINE+4]]:15: error: the pipes `q` are not made yet [E0489]
  // CHECK-NEXT: let n = len(q);
  // CHECK-NEXT:             ^
  // CHECK-NEXT: note: the loop that makes them runs after `let`, `require`, `ranks` and `backward`; read them in a pipe below it, in a model, or in `on rank`
  let n = len(q);
  on rank r { repeat M * n { F(q[0]); } repeat M { B(q[0]); } }
}

schedule called(P: int = 2, M: int = 2) {
  ranks P;
  for i in 0 .. 2 { pipe q { stages P; stage s on rank s; microbatches M * i .. M * (i + 1); } }
  // CALLED: loop-pipes-in-head.pp:[[#@LINE+1]]:20: error: the pipes `q` are not made yet [E0489]
  fn count() = len(q);
  // CALLED: loop-pipes-in-head.pp:[[#@LINE+1]]:11: note: in the call of `count` here
  require count() == 2;
  on rank r { for p in 0 .. 2 { repeat M { F(q[p]); } } for p in 0 .. 2 { repeat M { B(q[p]); } } }
}

schedule counts(P: int = 2, M: int = 2) {
  for i in 0 .. 2 { pipe q { stages P; stage s on rank s; microbatches M * i .. M * (i + 1); } }
  // COUNTS: loop-pipes-in-head.pp:[[#@LINE+1]]:13: error: the pipes `q` are not made yet [E0489]
  ranks len(q);
  on rank r { for p in 0 .. 2 { repeat M { F(q[p]); } } }
}

schedule forwards(P: int = 2, M: int = 2) {
  ranks P;
  for i in 0 .. 2 { pipe q { stages P; stage s on rank s; microbatches M * i .. M * (i + 1); } }
  // FORWARDS: loop-pipes-in-head.pp:[[#@LINE+1]]:21: error: the pipes `q` are not made yet [E0489]
  backward when len(q) == 2;
  on rank r { for p in 0 .. 2 { repeat M { F(q[p]); } } }
}

schedule denies(P: int = 2, M: int = 2) {
  ranks P;
  for i in 0 .. 2 { pipe q { stages P; stage s on rank s; microbatches M * i .. M * (i + 1); } }
  // DENIES:      loop-pipes-in-head.pp:[[#@LINE+1]]:11: error: `P == 3 and len(q) == 2` does not hold [E0404]
  require P == 3 and len(q) == 2;
  // DENIES: note: `P == 3 and len(q) == 2` is false with P = 2
  on rank r { for p in 0 .. 2 { repeat M { F(q[p]); } } for p in 0 .. 2 { repeat M { B(q[p]); } } }
}

schedule late(P: int = 2, M: int = 2) {
  ranks P;
  for i in 0 .. 2 { pipe q { stages P; stage s on rank s; microbatches i .. i + 1; } }
  // LATE: {"name": "q[0]", "microbatches": [0,1], "rank_of_stage": [0, 1],
  // LATE: {"name": "q[1]", "microbatches": [1,2], "rank_of_stage": [0, 1],
  pipe b { stages len(q); stage s on rank s % len(q); microbatches 4 .. 4 + len(q); slices len(q) - 1; for i in 1 .. len(q) { edge stage i - 1 -> stage i; } }
  // LATE: {"name": "b", "microbatches": [4,6], "rank_of_stage": [0, 1],
  for i in 0 .. len(q) { pipe c { stages 1; stage s on rank i; microbatches 6 + i .. 7 + i; } }
  // LATE: {"name": "c[1]", "microbatches": [7,8], "rank_of_stage": [1],
  model { cost F = len(q) + 5; static stage s = len(q); output stage s in 0 .. len(c) - 1 = x[len(q)] f32; }
  cluster { limit = 100 * len(c); link from, to { latency = len(q); } }
  on rank r where len(q) == 2 { for p in 0 .. len(q) { F(q[p]); } repeat 2 { F(b); } F(c[r]); B(c[r]); repeat 2 { B(b); } for p in 0 .. len(q) { B(q[p]); } }
}

schedule sometimes(P: int = 2, M: int = 2) {
  ranks P;
  for i in 0 .. 2 { pipe q { stages P; stage s on rank s; microbatches M * i .. M * (i + 1); } }
  // PROVE: 3 valid
  // PROVE: 4 .. invalid {{.*}}the pipes are not made yet
  let n = M > 3 ? len(q) : 2;
  on rank r { for p in 0 .. n { repeat M { F(q[p]); } } for p in 0 .. n { repeat M { B(q[p]); } } }
}

schedule proven(P: int = 2, M: int = 2) {
  ranks P;
  for i in 0 .. 2 { pipe q { stages P; stage s on rank s; microbatches M * i .. M * (i + 1); } }
  pipe b { stages P; stage s on rank s; microbatches M * len(q) .. M * (len(q) + 1); }
  // PROVEN: proven is valid for every M that it admits, on stream; makespan 9 M + 3
  on rank r {
    for p in 0 .. len(q) { repeat M { F(q[p]); } }
    repeat M { F(b); }
    repeat M { B(b); }
    for p in 0 .. len(q) { repeat M { B(q[p]); } }
  }
}
