// Microbatches as second arguments, and actions where a chunk stands.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
schedule s(P: int = 2) {
  ranks P; microbatches 2; placement loop(2);
  on rank r {
    // CHECK:      other-languages.pp:[[#@LINE+2]]:24: error: `F` takes a chunk and perhaps `mb:`, but 2 are given [E0312]
    // CHECK:      note: a microbatch is named: `F(c, mb: m)`
    for i in 0 .. 2 {  F(0, i); }
    // CHECK:      other-languages.pp:[[#@LINE+2]]:20: error: unknown name `B` [E0301]
    // CHECK:      note: `B` is an action, which `issued(B)` counts
    repeat pending(B) { W; }
  }
}
