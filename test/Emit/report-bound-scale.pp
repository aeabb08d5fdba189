// Where microbatches differ, those that memory holds before the first gradient may be the longest: 21 is the least of all orders.
// RUN: ppcc report %s --comm-order=none | FileCheck %s
// CHECK:      makespan     21 units
// CHECK:      resources    21 (lower bound of every order; the makespan is 0.00 % above it)
schedule uneven() {
  ranks 2; microbatches 3; placement linear;
  model {
    cost F = 1; cost I = 3; cost W = 0.5;
    scale F microbatch m = m == 1 ? 2 : 0;
    bytes = 4;
    memory F = 1;
  }
  cluster { bandwidth = 2; limit = 2; }
  on rank 0 { F(mb: 0); F(mb: 1); I(mb: 0); W(mb: 0); F(mb: 2); I(mb: 1); W(mb: 1); I(mb: 2); W(mb: 2); }
  on rank 1 { F(mb: 0); I(mb: 0); W(mb: 0); F(mb: 1); I(mb: 1); W(mb: 1); F(mb: 2); I(mb: 2); W(mb: 2); }
}
