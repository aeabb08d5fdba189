// What is missing is missing behind the token before it, also across the end of a line.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  // CHECK:      expected-token.pp:[[#@LINE+4]]:10: error: expected `;` [E0203]
  // CHECK-NEXT:   [[#@LINE+3]] |   ranks 2
  // CHECK-NEXT:     |          ^
  // CHECK-NEXT: note: see docs/language.md for the form of each construct
  ranks 2
  microbatches 2;
  // CHECK:      expected-token.pp:[[#@LINE+1]]:8: error: expected `=` [E0203]
  let w 3;
  placement linear;
  on rank r { F; B; }
}
