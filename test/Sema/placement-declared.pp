// A file declares placements of its own, also under the names of the library.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s --match-full-lines
// CHECK:      rank 0: 2F0 3F0 3B0 2B0
// CHECK-NEXT: rank 1: 0F0 1F0 1B0 0B0
// RUN: not ppcc %s -D n=1 2>&1 | FileCheck %s --check-prefix=RANK --implicit-check-not=error:

fn from(s, n) = s / n;
placement linear(n: int >= 1) { stages 2 * ranks; stage s on rank ranks - 1 - from(s, n); }

schedule s(n: int = 2) {
  ranks 2; microbatches 1;
  // RANK: placement-declared.pp:[[#@LINE+1]]:3: error: stage 2 is on rank -1, but ranks are 0..1 [E0409]
  placement linear(n);
  on rank r { F(0); F(1); B(1); B(0); }
}
