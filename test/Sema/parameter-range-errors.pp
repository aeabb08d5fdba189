// Ranges are of numbers, and only of what is given from outside.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK: parameter-range-errors.pp:[[#@LINE+1]]:16: error: unexpected range, expected `,` or `)`: only schedules and rules have defaults, and they and placements ranges [E0204]
fn f(a: int >= 1) = a;
// CHECK: parameter-range-errors.pp:[[#@LINE+1]]:15: error: a parameter with a range must be int, int[] or float, but this is bool [E0310]
schedule s(b: bool >= 1 = true,
// CHECK: parameter-range-errors.pp:[[#@LINE+1]]:15: error: a parameter with two bounds must be int, but this is float [E0310]
           x: float in 0 .. 1 = 0.5,
// CHECK: parameter-range-errors.pp:[[#@LINE+1]]:27: error: the range must be int, but this is bool [E0310]
           n: int in 0 .. true = 1) {
  ranks 1; microbatches 1; placement linear;
  on rank r { F; B; }
}
