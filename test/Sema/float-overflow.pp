// A float beyond the largest is an error at the operator that makes it.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: ppcc %s -D huge=1e307 --emit=actions | FileCheck %s --check-prefix=FINE
// FINE: rank 0: 0F0 0B0

fn ten(x: float) = x * 10;
schedule s(huge: float = 1e308) {
  // CHECK:      float-overflow.pp:[[#@LINE-2]]:20: error: 1e+308 * 10 does not fit in 64 bits [E0406]
  // CHECK-NEXT:   [[#@LINE-3]] | fn ten(x: float) = x * 10;
  // CHECK-NEXT:     |                    ^~~~~~
  // CHECK-NEXT: float-overflow.pp:[[#@LINE+3]]:11: note: in the call of `ten` here
  // CHECK:      note: integers are between -2^63 and 2^63 - 1, floats below 1.8e308
  // CHECK:      float-overflow.pp:[[#@LINE+2]]:11: error: -1e+308 - 1e+308 does not fit in 64 bits [E0406]
  require ten(huge) > 1;
  require -huge - huge < 1;
  // CHECK:      float-overflow.pp:[[#@LINE+1]]:27: error: 1e+308 / 0.01 does not fit in 64 bits [E0406]
  require huge < 1e308 or huge / 0.01 > 1;
  ranks 1; microbatches 1; placement linear;
  on rank r { F; B; }
}
