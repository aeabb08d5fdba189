// A parameter tells its range, and the message is made from it.
// RUN: ppcc %s -D P=2 -D n=1 --check
// RUN: not ppcc %s -D P=0 2>&1 | FileCheck %s --check-prefix=LEAST --implicit-check-not=error:
// RUN: not ppcc %s -D P=2 -D G=9 2>&1 | FileCheck %s --check-prefix=BOTH --implicit-check-not=error:
// RUN: not ppcc %s -D P=2 -D x=-1 2>&1 | FileCheck %s --check-prefix=FLOAT --implicit-check-not=error:
// RUN: not ppcc %s -D P=2 -D caps=3,0 2>&1 | FileCheck %s --check-prefix=LIST --implicit-check-not=error:
// RUN: not ppcc %s -D P=2 -D n=0 2>&1 | FileCheck %s --check-prefix=PLACED --implicit-check-not=error:
// RUN: not ppcc %s -D P=2 -D k=-3 2>&1 | FileCheck %s --check-prefix=RULE --implicit-check-not=error:
// RUN: ppcc %s --list-params | FileCheck %s --check-prefix=PARAMS --match-full-lines
// PARAMS:      P: int >= 1 = 0
// PARAMS-NEXT: M: int >= 1 = 4
// PARAMS-NEXT: G: int in 1 .. M + 1 = min(P, M)
// PARAMS-NEXT: x: float >= 0 = 0.5
// PARAMS-NEXT: caps: int[] >= 1 = [4, 3]

// LEAST:      parameter-ranges.pp:[[#@LINE+7]]:12: error: `P` is 0, but must be at least 1 [E0480]
// LEAST-NEXT:   [[#]] |
// LEAST-NEXT:     |            ^
// LEAST-NEXT: note: choose another value
// BOTH: error: `G` is 9, but must be in 1 .. 5 [E0480]
// BOTH: note: a range excludes its end
// FLOAT: error: `x` is -1, but must be at least 0 [E0480]
schedule s(P: int >= 1 = 0, M: int >= 1 = 4, G: int in 1 .. M + 1 = min(P, M), x: float >= 0 = 0.5,
           // LIST: parameter-ranges.pp:[[#@LINE+1]]:12: error: `caps` is 3,0, but must be at least 1 [E0480]
           caps: int[] >= 1 = [4, 3], n: int = 2, k: int = 1) {
  ranks P; microbatches M * G;
  // PLACED:      parameter-ranges.pp:[[#@LINE+2]]:18: error: `V` is 0, but must be at least 1 [E0480]
  // PLACED:      <library>/placements.pp:{{.*}} note: its range is here
  placement loop(n);
  // RULE: parameter-ranges.pp:[[#@LINE+1]]:13: error: `least` is -3, but must be at least 0 [E0480]
  with late(k);
  on rank r { for c in 0 .. n { repeat M * G { F(c); } } for c in 0 .. n { repeat M * G { B(n - 1 - c); } } }
}

action LOG { after F; }
rule late(least: int >= 0 = 1) { insert LOG after F for microbatch m when m > least; }
