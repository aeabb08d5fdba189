// Only a part of another action can be deferred.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  ranks 1; microbatches 1; placement linear;
  on rank r {
    F;
    // CHECK:      not-deferrable.pp:[[#@LINE+4]]:11: error: `I` cannot be deferred [E0320]
    // CHECK-NEXT:   [[#@LINE+3]] |     defer I { B; }
    // CHECK-NEXT:     |           ^
    // CHECK-NEXT: note: `defer` and `drain` apply to W, the part of B that may run later
    defer I { B; }
    // CHECK:      not-deferrable.pp:[[#@LINE+1]]:11: error: `B` cannot be deferred [E0320]
    drain B;
    // CHECK:      not-deferrable.pp:[[#@LINE+1]]:11: error: `F` cannot be deferred [E0320]
    defer F lag 1 { }
  }
}
