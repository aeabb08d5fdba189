// A division of ints whose remainder is lost where a float is wanted is a warning that says what to write.
// RUN: ppcc %s --emit=ir 2>&1 | FileCheck %s --implicit-check-not=warning:
// RUN: ppcc %s -D M=1 --emit=ir 2>&1 | FileCheck %s --check-prefix=WHOLE --implicit-check-not=warning:
// WHOLE: "cost": {{.*}}"F"

fn half(x) = x / 2;
fn scaled(x: float) = x;
schedule s(M: int = 3) {
  ranks 1; microbatches M; placement linear;
  let floored = 7 / 2;
  model {
    // CHECK:      remainder-lost.pp:[[#@LINE+5]]:16: warning: integer division 1 / 3 gives 0, where a float is expected [E0418]
    // CHECK-NEXT:   [[#@LINE+4]] |     memory F = 1 / M;
    // CHECK-NEXT:     |                ^~~~~
    // CHECK-NEXT: note: write `1.0 / M`
    // CHECK-NEXT: note: divide floats, as in `x / 2.0`; if the integer is meant, name it with `let`
    memory F = 1 / M;
    // CHECK:      remainder-lost.pp:[[#@LINE+2]]:14: warning: integer division 4 / 3 gives 1, where a float is expected [E0418]
    // CHECK:      note: write `1.0 * (M + 1) / M`
    cost F = (M + 1) / M;
    // CHECK:      remainder-lost.pp:[[#@LINE+2]]:22: warning: integer division -1 / 3 gives -1, where a float is expected [E0418]
    // CHECK:      note: write `1.0 * -1 / M`
    cost B = max(1, (-1 / M) + (M > 1 ? 3 : 8 / 2));
    // CHECK:      remainder-lost.pp:[[#@LINE+1]]:31: warning: integer division 1 / 3 gives 0, where a float is expected [E0418]
    cost W = 1 + 0.5 * scaled(1 / M);
    cost I = floored + half(5) + 4 * M / M + 7 / 2 % 2;
  }
  on rank r { repeat M { F; B; } }
}
