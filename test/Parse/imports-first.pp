// Imports may stand between declarations, but not in a schedule.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

fn f(x) = x;
import "gpipe.pp";
schedule s() {
  // CHECK: imports-first.pp:[[#@LINE+1]]:3: error: unexpected `import`, expected a declaration or `}` [E0204]
  import "gpipe.pp";
}
