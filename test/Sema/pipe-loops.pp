// Pipes in a loop: the name of each is the list of what the loop makes.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s --match-full-lines
// RUN: ppcc %s --emit=ir | ppcc - --emit=ir --passes=unroll | FileCheck %s --check-prefix=IR
// RUN: not ppcc %s -D n=0 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ppcc %s -D n=300 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not ppcc %s -D at=2 2>&1 | FileCheck %s --check-prefix=PLACE
// IR: "turned[0]"
// IR: "turned[1]"
// NONE: pipe-loops.pp:{{[0-9]+}}:26: error: the number of pipes is 0, but must be in 1..256 [E0405]
// MANY: error: the number of pipes is 257, but must be in 1..256 [E0405]
// PLACE: error: index 2 is out of range for a list of 2 [E0484]
// CHECK:      rank 0: 0F0 1F1 0B0 1B1
// CHECK-NEXT: rank 1: 1F0 0F1 1B0 0B1

block both(pipes: pipe[]) {
  for i in 0 .. len(pipes) { F(pipes[i]); }
  for i in 0 .. len(pipes) { B(pipes[i]); }
}
schedule turns(n: int = 2, at: int = 0) {
  ranks 2;
  for i in 0 .. n { pipe turned { stages 2; stage s on rank (s + i) % 2; microbatches i .. i + 1; } }
  on rank r { both(at == 0 ? turned : [turned[at]]); }
}
