// What operators apply to.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s(b: bool = true, i: int = 1, f: float = 1.5) {
  ranks i;
  pipe p { placement linear; microbatches 0 .. 1; }
  // CHECK:      operands.pp:[[#@LINE+4]]:14: error: `+` does not apply to bool and int [E0311]
  // CHECK-NEXT:   [[#@LINE+3]] |   let l1 = b + i;
  // CHECK-NEXT:     |              ^
  // CHECK-NEXT: note: arithmetic takes numbers; `and`, `or` and `not` take bools; `==` takes two values of one type
  let l1 = b + i;
  // CHECK:      operands.pp:[[#@LINE+1]]:14: error: `%` does not apply to float and int [E0311]
  let l2 = f % 2;
  // CHECK:      operands.pp:[[#@LINE+1]]:14: error: `<` does not apply to pipe [E0311]
  let l3 = p < p;
  // CHECK:      operands.pp:[[#@LINE+1]]:14: error: `<` does not apply to bool [E0311]
  let l4 = b < b;
  // CHECK:      operands.pp:[[#@LINE+1]]:14: error: `and` does not apply to int and bool [E0311]
  let l5 = i and b;
  // CHECK:      operands.pp:[[#@LINE+1]]:12: error: `not` does not apply to int [E0311]
  let l6 = not i;
  // CHECK:      operands.pp:[[#@LINE+1]]:12: error: `-` does not apply to bool [E0311]
  let l7 = -b;
  // CHECK:      operands.pp:[[#@LINE+1]]:14: error: `==` does not apply to pipe and int [E0311]
  let l8 = p == i;
  // CHECK:      operands.pp:[[#@LINE+1]]:14: error: `==` does not apply to bool and int [E0311]
  let l9 = b == i;
  let fine = (p == p) == (f < i) and b != (i >= 2);
  on rank r { F; B; }
}
