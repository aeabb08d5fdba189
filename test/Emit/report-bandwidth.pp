// What messages cost by their bandwidth alone would help, too.
// RUN: ppcc %s --emit=report | FileCheck %s
// CHECK: would help messages in no time: saves exactly 9 (30.00 %)
schedule slow_links() {
  ranks 2; microbatches 6; placement linear;
  model { bytes = 8; }
  cluster { bandwidth = 4; }
  on rank r { repeat 6 { F; } repeat 6 { B; } }
}
