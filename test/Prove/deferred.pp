// RUN: ppcc prove %s | FileCheck %s
// What is deferred grows with M.
// CHECK: ; makespan 3 M + 6{{$}}
schedule deferred(M: int = 8) {
  ranks 4; microbatches M; placement linear;
  on rank r { repeat M { F; } repeat M { I; } drain W; }
}
