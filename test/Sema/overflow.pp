// Arithmetic that leaves 64 bits is an error where it happens, with the calls that lead there.
// RUN: not ppcc %s:s 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK:      overflow.pp:[[#@LINE+11]]:16: error: 10000000000 * 10000000000 does not fit in 64 bits [E0406]
// CHECK-NEXT:   [[#@LINE+10]] | fn square(x) = x * x;
// CHECK-NEXT:     |                ^~~~~
// CHECK-NEXT: overflow.pp:[[#@LINE+9]]:16: note: in the call of `square` here
// CHECK-NEXT:   [[#@LINE+8]] | fn fourth(x) = square(square(x));
// CHECK-NEXT:     |                ^~~~~~~~~~~~~~~~~
// CHECK-NEXT: overflow.pp:[[#@LINE+14]]:12: note: in the call of `fourth` here
// CHECK-NEXT:   [[#@LINE+13]] |     repeat fourth(100000) { B; }
// CHECK-NEXT:     |            ^~~~~~~~~~~~~~
// CHECK-NEXT: note: in the body of rank 0
// CHECK-NEXT: note: integers are between -2^63 and 2^63 - 1, floats below 1.8e308
fn square(x) = x * x;
fn fourth(x) = square(square(x));
schedule s() {
  ranks 1; microbatches 1; placement linear;
  on rank r {
    let most = 9223372036854775807;
    let least = -most - 1;
    if r == 1 { repeat most + 1 { } }
    if least == 0 or false and most + 1 > 0 or true or most + 1 > 0 { F; }
    repeat fourth(100000) { B; }
  }
}
schedule add(max_int: int = 9223372036854775807) { ranks max_int + 1; microbatches 1; placement linear; on rank r { } }
schedule sub(max_int: int = 9223372036854775807) { ranks -max_int - 2; microbatches 1; placement linear; on rank r { } }
schedule neg(max_int: int = 9223372036854775807) { ranks -(-max_int - 1); microbatches 1; placement linear; on rank r { } }
schedule div(max_int: int = 9223372036854775807) { ranks (-max_int - 1) / -1; microbatches 1; placement linear; on rank r { } }
schedule absolute(max_int: int = 9223372036854775807) { ranks abs(-max_int - 1); microbatches 1; placement linear; on rank r { } }
// RUN: not ppcc %s:add 2>&1 | FileCheck %s --check-prefix=ADD
// ADD: error: 9223372036854775807 + 1 does not fit in 64 bits [E0406]
// RUN: not ppcc %s:sub 2>&1 | FileCheck %s --check-prefix=SUB
// SUB: error: -9223372036854775807 - 2 does not fit in 64 bits [E0406]
// RUN: not ppcc %s:neg 2>&1 | FileCheck %s --check-prefix=NEG
// NEG: error: 0 - -9223372036854775808 does not fit in 64 bits [E0406]
// RUN: not ppcc %s:div 2>&1 | FileCheck %s --check-prefix=DIV
// DIV: error: -9223372036854775808 / -1 does not fit in 64 bits [E0406]
// RUN: not ppcc %s:absolute 2>&1 | FileCheck %s --check-prefix=ABS
// ABS: error: 0 - -9223372036854775808 does not fit in 64 bits [E0406]
