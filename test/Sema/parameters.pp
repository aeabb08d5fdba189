// What -D gives to parameters.
// RUN: not ppcc %s -D widt=1 -D P=x -D P=3 -D f=inf -D b=1 -D P=2 2>&1 | FileCheck %s --implicit-check-not=error:
// CHECK:      -D widt: error: `s` has no parameter `widt`; did you mean `width`? [E0401]
// CHECK-NEXT: note: `ppcc SCHEDULE --list-params` shows them
// CHECK:      -D P: error: parameter `P` is given twice [E0414]
// CHECK-NEXT: note: keep one of the two `-D`
// CHECK:      -D P: error: parameter `P` is given twice [E0414]
// CHECK:      parameters.pp:[[#@LINE+9]]:12: error: parameter `width` has no value [E0402]
// CHECK-NEXT:   [[#@LINE+8]] | schedule s(width: int,
// CHECK-NEXT:      |            ^~~~~
// CHECK-NEXT: note: give it one: `-D NAME=VALUE`
// CHECK:      -D P: error: `x` is not a valid value for parameter `P: int` [E0403]
// CHECK-NEXT: note: an int is written as 8, a bool as true, a float as 0.5
// CHECK:      -D b: error: `1` is not a valid value for parameter `b: bool` [E0403]
// CHECK:      -D f: error: `inf` is not a valid value for parameter `f: float` [E0403]

schedule s(width: int,
           P: int = 2 * width, b: bool = P > 2, f: float = 1) {
  ranks P; microbatches width; placement linear;
  on rank r { repeat width { F; if b { B; } } if not b { repeat width { B; } } }
}

// RUN: ppcc %s -D width=1 --emit=json | FileCheck %s --check-prefix=DEFAULTS
// DEFAULTS: "params": {"width": 1, "P": 2, "b": false, "f": 1},
// RUN: ppcc %s -Dwidth=1 -D b=true -DP=1 -D f=-1.5e3 --emit=json | FileCheck %s --check-prefix=GIVEN
// GIVEN: "params": {"width": 1, "P": 1, "b": true, "f": -1500},

// RUN: not ppcc %s -D width=99999999999999999999 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: -D width: error: `99999999999999999999` is not a valid value for parameter `width: int` [E0403]
// RUN: not ppcc %s -D width= 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: -D width: error: `` is not a valid value for parameter `width: int` [E0403]
// RUN: not ppcc %s -D width=1=2 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: -D width: error: `1=2` is not a valid value for parameter `width: int` [E0403]
