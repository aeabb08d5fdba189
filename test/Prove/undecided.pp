// RUN: not ppcc prove %s | FileCheck %s
// M loops of M iterations.
// CHECK: undecided {{.*}}undecided.pp:[[#@LINE+5]]:{{[0-9]+}}: a loop that grows with the microbatches is nested in another
schedule square(M: int = 8) {
  ranks 1; microbatches M; placement linear;
  on rank r {
    for i in 0 .. M {
      for k in 0 .. M { if k == i { F; } }
    }
    repeat M { B; }
  }
}
