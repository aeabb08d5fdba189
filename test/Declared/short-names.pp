// Two letters tell declared actions apart; those that have no more keep them, wherever they stand.
// RUN: ppcc %s --emit=timeline --width=40 | FileCheck %s --match-full-lines --strict-whitespace
//      CHECK:names: makespan 5 by its data alone
// CHECK-NEXT:rank 0 │F0──X00─XZ0─XY0─XQ0─
//      CHECK:F forward, X0 XYZ on compute, XZ XZ on compute, XY XY on compute, XQ XQY on compute, · idle; a column is 0.25
action XYZ { lane compute; cost 1; after F; }
action XZ { lane compute; cost 1; after F; }
action XY { lane compute; cost 1; after F; }
action XQY { lane compute; cost 1; after F; }
schedule names() {
  ranks 1; microbatches 1; placement linear; backward when false;
  on rank r { F; XYZ; XZ; XY; XQY; }
}
