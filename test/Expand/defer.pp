// In defer W each B becomes an I; with a lag, a W is taken when more are pending; the inner defer counts.
// RUN: ppcc %s --comm-order=none --emit=actions | FileCheck %s

schedule s() {
  ranks 1; microbatches 7; placement linear;
  // CHECK: rank 0: {{.*}}0F6 0I0 0I1 0I2 0W0 0I3 0W1 0W2 0W3 0B4 0I5 0W5 0I6 0W6{{$}}
  on rank r {
    repeat 7 { F; }
    defer W {
      B;
      defer W lag 2 { B; B; B; }
      drain W;
    }
    B;
    defer W lag 0 { B; }
    defer W lag -1 { I; }
  }
}
