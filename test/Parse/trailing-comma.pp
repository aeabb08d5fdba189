// Parameters may end in a comma; nothing else may.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

fn f(x, y,) = x + y;
schedule s(P: int = 2,) {
  // CHECK: trailing-comma.pp:[[#@LINE+1]]:16: error: unexpected `)`, expected an expression [E0204]
  ranks f(1, 2,);
}
