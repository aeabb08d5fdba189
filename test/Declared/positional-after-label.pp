// An argument without a label cannot follow one with: it would be unclear which parameter it is for.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
import "std.pp";

schedule s() {
  ranks 1; microbatches 1; placement linear;
  // CHECK:      positional-after-label.pp:[[#@LINE+4]]:24: error: positional argument after the labelled argument `n:` [E0326]
  // CHECK-NEXT:   [[#@LINE+3]] |   with recompute(n: 1, 3);
  // CHECK-NEXT:     |                        ^
  // CHECK-NEXT: note: positional arguments come first, in the order of the parameters
  with recompute(n: 1, 3);
  with recompute(3, n: 1);
  // CHECK:      positional-after-label.pp:[[#@LINE+1]]:27: error: positional argument after the labelled argument `mb:` [E0326]
  on rank r { F; B(mb: 0, 0); }
}
