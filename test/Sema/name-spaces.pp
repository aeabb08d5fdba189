// Values, functions, statements and rules have name spaces of their own: where a word stands says which is meant.
// RUN: ppcc %s:s --emit=actions 2>&1 | FileCheck %s --implicit-check-not=warning:
// CHECK: rank 0: 0F0 0F1 0R0 0B0 0R1 0B1 STEP
// RUN: ppcc %s:bare --with=recompute --with=step --emit=actions 2>&1 | FileCheck %s --check-prefix=WITH --implicit-check-not=warning:
// WITH: rank 0: 0F0 0F1 0R0 0B0 0R1 0B1 STEP
import "std.pp";

fn R(x) = x + 1;
fn recompute(R) = R(R) - R;
block step(F) { repeat F { F; } }
rule R(R: int = 0) { insert R before B, I for F F when F >= R; }
schedule s(R: int = 1, STEP: int = 2, recompute: int = 1, mb: int = 0) {
  ranks R; microbatches R(R); placement linear;
  with R;
  fn STEP(F) = F * recompute(1);
  let F = STEP(STEP) * recompute;
  on rank B {
    step(F);
    for W in B .. F { B(mb: mb + W); }
    STEP;
  }
}
schedule bare(R: int = 1, STEP: int = 2) {
  ranks R; microbatches STEP; placement linear;
  on rank r { repeat STEP { F; } repeat STEP { B; } }
}
