// A schedule has the order of another one, with parameters passed or fixed, and with rules and costs of its own.
// RUN: ppcc %s:half --comm-order=none --emit=actions | FileCheck %s --check-prefix=HALF --match-full-lines
// RUN: ppcc %s:half --emit=json | FileCheck %s --check-prefix=JSON
// RUN: ppcc %s:again -D P=2 --comm-order=none --emit=actions | FileCheck %s --check-prefix=AGAIN --match-full-lines
// RUN: not ppcc %s:half -D n=0 2>&1 | FileCheck %s --check-prefix=RANGE --implicit-check-not=error:
import "std.pp";
import "one_f_one_b.pp";

// JSON: "schedule": "half",
// JSON-NEXT: "params": {"n": 2},
// HALF:      rank 0: 0F0 0F1 0R0 0B0 0R1 0B1
// HALF-NEXT: rank 1: 1F0 1R0 1B0 1F1 1R1 1B1
schedule half(n: int = 2) {
  let twice = 2 * n;
  // RANGE: import-schedule.pp:[[#@LINE+1]]:25: error: `M` is 0, but must be at least 1 [E0480]
  import one_f_one_b(2, twice / 2);
  with recompute;
  model { cost F = 2; }
}

// AGAIN:      rank 0: 0F0 0F1 0R0 0B0 0R1 0B1 STEP
// AGAIN-NEXT: rank 1: 1F0 1R0 1B0 1F1 1R1 1B1 STEP
schedule again(P: int) {
  import half(n: P);
  with step;
}
