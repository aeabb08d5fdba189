// issued, pending and padded on the way.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s

schedule s() {
  ranks 1; microbatches 2; placement loop(2);
  // CHECK: rank 0: 0F0 0F1 1F0 1F1 1B0 1I1 0I0 0I1 1W1 0W0 0W1
  on rank r {
    while issued(F, 0) < padded(0) { F(0); }
    while issued(F, 1) < issued(F, 0) { F(1); }
    B(1);
    if issued(B, 1) == 1 and issued(I, 1) == 1 and issued(W, 1) == 0 and pending == 0 { I(1); }
    if pending == 1 and pending(1) == 1 and pending(0) == 0 and issued(B, 1) == 2 { I(0); }
    if pending == 2 and pending(0) == 1 and padded == 2 { I(0); }
    if pending == 3 and pending(0) == 2 { W; }
    if issued(W, 1) == 1 and pending(1) == 0 { W; W; }
    if pending > 0 or issued(W, 0) != 2 { F(0); }
  }
}
