// By cost, over four stages and over two layers of different cost: the longest stage takes 4.
// RUN: ppcc %s:by_cost --comm-order=none --emit=ir | FileCheck %s
// CHECK: "layout": ["tt", "tuu", "tt", "t"]
// CHECK: "F": {"main": [4,4,4,2]}
schedule by_cost() {
  ranks 4; microbatches 1; placement linear;
  model {
    layer t { cost F = 2; }
    layer u { cost F = 1; }
    layers t * 3, u * 2, t * 3 by cost;
  }
  on rank r { F; B; }
}

// Nodes count, whether a layer says what they take or the model says it of all layers.
// RUN: ppcc %s:by_nodes --comm-order=none --emit=ir | FileCheck %s --check-prefix=NODES
// NODES: "layout": ["t", "uuuu"]
schedule by_nodes() {
  ranks 2; microbatches 1; placement linear;
  model {
    layer t { F: a @ comp -> b @ comm; B: b @ comm -> a @ comp; }
    layer u { F: a @ comp; B: a @ comp; cost F.a = 3; }
    layers t, u * 4 by cost;
    cost F.a = 1; cost F.b = 8; cost B.a = 1; cost B.b = 8;
  }
  on rank r { F; B; }
}

// No part has more stages than layers while another could use them.
// RUN: ppcc %s:parts --comm-order=none --emit=ir | FileCheck %s --check-prefix=PARTS
// PARTS: "layout": ["xx", "x", "x", "y"]
schedule parts() {
  ranks 4; microbatches 1; placement linear;
  model {
    layer x { cost F = 1; }
    layer y { cost F = 100; }
    part small { layers x * 4 by cost; }
    part large { layers y by cost reads small; }
  }
  on rank r { F; B; }
}
