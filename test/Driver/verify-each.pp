// --verify-each checks the program before the first pass too.
// RUN: not ppcc %s --passes=inject-comm --comm-order=none --verify-each 2>&1 | FileCheck %s
// RUN: ppcc gpipe --verify-each --emit=actions | FileCheck %s --check-prefix=FINE
// FINE: rank 0: 0F0

schedule s() {
  ranks 1; microbatches 1; placement linear;
  // CHECK: verify-each.pp:[[#@LINE+1]]:15: error: microbatch 0 of stage 0 has no `B` (or `I` and `W`) [E0701]
  on rank r { F; }
}
