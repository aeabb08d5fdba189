// Imports may stand between declarations, but in a schedule the name of another one follows.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

fn f(x) = x;
import "gpipe.pp";
schedule s() {
  // CHECK: imports-first.pp:[[#@LINE+1]]:10: error: unexpected `"gpipe.pp"`, expected a name [E0204]
  import "gpipe.pp";
}
