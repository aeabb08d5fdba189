// Edges belong to a pipe.
// RUN: ppcc %s --emit=json | FileCheck %s

schedule s() {
  ranks 3;
  // CHECK: "skip_edges": []}, {"name": "up", {{.*}} "skip_edges": [{{\[}}0,2]]}]
  pipe down { placement linear; microbatches 0 .. 1; }
  pipe up { stages 3; stage s on rank 2 - s; microbatches 1 .. 2; edge stage 0 -> stage 2; }
  on rank r {
    if r == 0 { F(down); F(up); } else { F(up); F(down); }
    if r == 0 { B(up); B(down); } else { B(down); B(up); }
  }
}
