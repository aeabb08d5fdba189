// How many forwards may be ahead where memory is limited follows from the slowest rank, whichever that is.
// RUN: ppcc %s -D slow=1 --comm-order=none --emit=actions | FileCheck %s --check-prefix=MIDDLE --match-full-lines
//      MIDDLE: rank 0: 0F0 0F1 0F2 0I0 0F3 0W0 0I1 0F4 0W1 0I2 0W2 0I3 0W3 0I4 0W4
// MIDDLE-NEXT: rank 1: 1F0 1I0 1F1 1W0 1I1 1F2 1W1 1I2 1F3 1W2 1I3 1F4 1W3 1I4 1W4
// MIDDLE-NEXT: rank 2: 2F0 2I0 2W0 2F1 2I1 2W1 2F2 2I2 2W2 2F3 2I3 2W3 2F4 2I4 2W4
// RUN: ppcc %s -D slow=2 --comm-order=none --emit=actions | FileCheck %s --check-prefix=LAST --match-full-lines
//      LAST: rank 0: 0F0 0F1 0F2 0I0 0F3 0W0 0I1 0F4 0W1 0I2 0W2 0I3 0W3 0I4 0W4
// LAST-NEXT: rank 1: 1F0 1F1 1F2 1I0 1W0 1F3 1I1 1W1 1F4 1I2 1W2 1I3 1W3 1I4 1W4
// LAST-NEXT: rank 2: 2F0 2I0 2F1 2I1 2F2 2I2 2F3 2I3 2F4 2I4 2W0 2W1 2W2 2W3 2W4
schedule slow_rank(slow: int) {
  ranks 3; microbatches 5; placement linear;
  model {
    cost F stage s = s == slow ? 3 : 1;
    cost I stage s = s == slow ? 3 : 1;
    cost W stage s = s == slow ? 3 : 1;
    memory F = 1; memory I = -1; memory W = 0;
  }
  cluster { limit = 4; }
  on rank r { defer W fill { repeat 5 { F; } repeat 5 { B; } } }
}
