// Functions over ints, bools, floats and pipes, of a file and of a schedule, which sees its parameters.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s

fn twice(x) = 2 * x;
fn chosen(first: bool, a: pipe, b: pipe) = first ? a : b;
fn more(x: float, y: float) = x > y;
schedule s(P: int = 2) {
  ranks P;
  pipe a { placement linear; microbatches 0 .. 1; }
  pipe b { placement linear; microbatches 1 .. 2; }
  fn last(r) = twice(r) == twice(P - 1);
  // CHECK:      rank 0: 0F1 0F0 0B1 0B0
  // CHECK-NEXT: rank 1: 1F0 1F1 1B0 1B1
  on rank r {
    let first = chosen(last(r), a, b);
    let second = chosen(more(r, 0.5), b, a);
    F(first); F(second);
    B(first); B(second);
  }
}
