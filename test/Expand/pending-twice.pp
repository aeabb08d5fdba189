// An I that runs twice leaves two W's, and each is there by its number: what is wrong is that the work is done twice.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: sed 's/repeat 2 { W/repeat 3 { W/' %s > %t.pp && not ppcc %t.pp 2>&1 | FileCheck %t.pp --check-prefix=THIRD --implicit-check-not=error:
schedule s() {
  ranks 1; microbatches 1; placement linear;
  on rank r {
    F;
    repeat 2 { I(mb: 0); }
    // CHECK-DAG: pending-twice.pp:8:16: error: `0I0` runs twice [E0702]
    // CHECK-DAG: pending-twice.pp:[[#@LINE+2]]:16: error: `0W0` runs twice [E0702]
    // THIRD: :[[#@LINE+1]]:16: error: 0W0 is not pending [E0507]
    repeat 2 { W(mb: 0); }
  }
}
