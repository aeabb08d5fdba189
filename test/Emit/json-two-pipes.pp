// Both pipes are there, with the rank of each stage; the peer of a message is a stage.
// RUN: ppcc %s --comm-order=sweep | FileCheck %s
schedule both() {
  ranks 2;
  pipe down { stages 2; stage s on rank s;     microbatches 0 .. 1; }
  pipe up   { stages 2; stage s on rank 1 - s; microbatches 1 .. 2; }
  backward when false;
  on rank r {
    if r == 0 { F(down); F(up); } else { F(up); F(down); }
  }
}
// CHECK: "pipes": [{"name": "down", "microbatches": [0,1], "rank_of_stage": [0, 1], "skip_edges": []}, {"name": "up", "microbatches": [1,2], "rank_of_stage": [1, 0], "skip_edges": []}],
// CHECK: "actions": [
// CHECK-NEXT: {{\[\[}}0,0,0,0,-1,{{[^]]*}}],[4,0,0,0,1,{{[^]]*}}],[5,1,1,1,0,{{[^]]*}}],[0,1,1,1,-1,
// CHECK-NEXT: {{\[\[}}5,0,1,0,0,{{[^]]*}}],[0,1,0,1,-1,{{[^]]*}}],[4,1,0,1,1,{{[^]]*}}],[0,0,1,0,-1,
