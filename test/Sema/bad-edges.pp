// Edges lead from a stage to a later one that exists.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  ranks 4; microbatches 1; placement linear;
  // CHECK:      bad-edges.pp:[[#@LINE+4]]:14: error: an edge from stage 2 to stage 1, but there are 4 stages [E0410]
  // CHECK-NEXT:   [[#@LINE+3]] |   edge stage 2 -> stage 1;
  // CHECK-NEXT:     |              ^~~~~~~~~~~~
  // CHECK-NEXT: note: edges lead from a stage to a later one, and both must exist
  edge stage 2 -> stage 1;
  // CHECK:      bad-edges.pp:[[#@LINE+1]]:14: error: an edge from stage 1 to stage 1, but there are 4 stages [E0410]
  edge stage 1 -> stage 1;
  // CHECK:      bad-edges.pp:[[#@LINE+1]]:14: error: an edge from stage 0 to stage 4, but there are 4 stages [E0410]
  edge stage 0 -> stage 4;
  // CHECK:      bad-edges.pp:[[#@LINE+1]]:14: error: an edge from stage -1 to stage 2, but there are 4 stages [E0410]
  edge stage -1 -> stage 2;
  // CHECK:      bad-edges.pp:[[#@LINE+1]]:33: error: an edge from stage 0 to stage 4, but there are 4 stages [E0410]
  for i in 0 .. 10 { edge stage 0 -> stage i + 2; }
  on rank r { F; B; }
}
