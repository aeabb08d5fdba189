// RUN: not ppcc prove %s | FileCheck %s
// Rank 0 waits for a gradient before the forward that it comes from, for each third M.
// CHECK: {{^}}M % 3 = 1, 2 valid 3 M + 3{{$}}
// CHECK: {{^}}3, 6 invalid {{.*}}cycle.pp:[[#@LINE+9]]:{{.*}} wait
// CHECK: {{^}}M % 3 = 0, M >= 9 invalid {{.*}} ranks 0, 1 wait in a cycle
// CHECK: cycle is not proven for every M that it admits
schedule cycle(M: int = 8) {
  ranks 2;
  microbatches M;
  placement linear;
  on rank r {
    if M % 3 == 0 and r == 0 {
      F; repeat M - 1 { B; F; } B;
    } else if M % 3 == 0 {
      repeat M { F; } repeat M { B; }
    } else {
      repeat min(1 - r, M) { F; }
      repeat M - min(1 - r, M) { F; B; }
      repeat min(1 - r, M) { B; }
    }
  }
}
