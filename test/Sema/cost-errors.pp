// What is no cost.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
schedule s() {
  ranks 2;
  placement linear;
  microbatches 1;
  model {
    // CHECK: cost-errors.pp:[[#@LINE+1]]:14: error: a cost of -1 is negative [E0420]
    cost F = -1;
    // CHECK: cost-errors.pp:[[#@LINE+3]]:22: error: a cost of 2000000000.5 is more than 1000000000 [E0421]
    // CHECK-NEXT: cost B stage s =
    // CHECK-NEXT: ^~~
    cost B stage s = s + 2000000000 + 0.5;
    // CHECK: cost-errors.pp:[[#@LINE+1]]:22: error: a cost of -0.5 is negative [E0420]
    cost I stage s = -0.5;
    // CHECK: cost-errors.pp:[[#@LINE+1]]:20: error: a cost of inf is more than 1000000000 [E0421]
    cost overlap = 1e308 * 10;
    // CHECK: cost-errors.pp:[[#@LINE+1]]:19: error: `latency` is one number for the whole schedule [E0422]
    latency stage s = 0.5;
  }
  on rank r { F; B; }
}
