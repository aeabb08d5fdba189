// The rows of all M name the same kinds.
// RUN: not ppcc %s --for M 2>&1 | FileCheck %s
// CHECK: error: there is no program for all `M`: files or kinds differ at M = 5 [E1203]

action LOG { per stage; after F; }
schedule s(M: int >= 1) {
  ranks 2; microbatches M; placement linear;
  on rank r { repeat M { F; } if M > 4 { LOG; } repeat M { B; } }
}
