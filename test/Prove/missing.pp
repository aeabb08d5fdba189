// RUN: not ppcc prove %s | FileCheck %s
// The last backward is missing on rank 1, for all M.
// CHECK: 1 invalid
// CHECK: .. invalid {{.*}}there too seldom
schedule missing(M: int = 8) {
  ranks 2; microbatches M; placement linear;
  on rank r { repeat M { F; } repeat M - r { B; } }
}
