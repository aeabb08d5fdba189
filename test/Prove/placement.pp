// RUN: not ppcc prove %s | FileCheck %s
// A placement that is wrong is so for all M.
// CHECK: {{^}}1 .. invalid {{.*}}placement.pp:[[#@LINE+3]]:{{[0-9]+}}: stage 1 is on rank 3, but ranks are 0..1
schedule placed(M: int = 8) {
  ranks 2; microbatches M;
  stages 2; stage s on rank 3 * s;
  on rank r { repeat M { F; } repeat M { B; } }
}
