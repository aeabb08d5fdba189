// What is no cost.
// RUN: split-file %s %t
// RUN: not ppcc %t/cost-errors.pp 2>&1 | FileCheck %t/cost-errors.pp --implicit-check-not=error:
// RUN: not ppcc %t/cluster.pp 2>&1 | FileCheck %t/cluster.pp --implicit-check-not=error:

//--- cost-errors.pp
schedule s() {
  ranks 2;
  placement linear;
  microbatches 1;
  model {
    // CHECK: cost-errors.pp:[[#@LINE+1]]:14: error: a cost is -1, but cannot be negative [E0420]
    cost F = -1;
    // CHECK: cost-errors.pp:[[#@LINE+3]]:22: error: a cost of 2000000000.5 is more than 1000000000 [E0421]
    // CHECK-NEXT: cost B stage s =
    // CHECK-NEXT: ^~~
    cost B stage s = s + 2000000000 + 0.5;
    // CHECK: cost-errors.pp:[[#@LINE+1]]:22: error: a cost is -0.5, but cannot be negative [E0420]
    cost I stage s = -0.5;
    // CHECK: cost-errors.pp:[[#@LINE+1]]:20: error: a cost of 1e+308 is more than 1000000000 [E0421]
    cost overlap = 1e307 * 10;
    // CHECK: cost-errors.pp:[[#@LINE+1]]:15: error: `group max` cannot differ between stages [E0422]
    group max stage s = 1;
    // CHECK: cost-errors.pp:[[#@LINE+1]]:13: error: `bytes` is -1, but cannot be negative [E1002]
    bytes = -1;
    // CHECK: cost-errors.pp:[[#@LINE+1]]:16: error: `memory F` is -2000000000000, more than the limit of 1000000000000 [E1003]
    memory F = -2e12;
    // CHECK: cost-errors.pp:[[#@LINE+1]]:14: error: `static` is -0.5, but cannot be negative [E1002]
    static = -0.5;
    // CHECK: cost-errors.pp:[[#@LINE+1]]:14: error: `memory W` cannot differ between ranks [E0422]
    memory W rank r = -1;
  }
  on rank r { F; B; }
}

//--- cluster.pp
schedule s() {
  ranks 2;
  placement linear;
  microbatches 1;
  cluster {
    // CHECK: cluster.pp:[[#@LINE+1]]:23: error: a cost is -1, but cannot be negative [E0420]
    latency stage s = s * -1;
    // CHECK: cluster.pp:[[#@LINE+1]]:17: error: a bandwidth must not be 0 [E1004]
    bandwidth = 0;
    // CHECK: cluster.pp:[[#@LINE+1]]:11: error: `limit` cannot differ between stages [E0422]
    limit stage s = 5;
    link a, b {
      // CHECK: cluster.pp:[[#@LINE+1]]:17: error: a cost is -1, but cannot be negative [E0420]
      latency = b - a;
      // CHECK: cluster.pp:[[#@LINE+1]]:19: error: a bandwidth must not be 0 [E1004]
      bandwidth = a;
    }
  }
  on rank r { F; B; }
}
