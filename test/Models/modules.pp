// Names for stages: in actions and counters, as values, and what they cannot be.
// RUN: split-file %s %t
// RUN: ppcc %t/named.pp --comm-order=none --emit=actions | FileCheck %t/named.pp --match-full-lines
// RUN: ppcc %t/named.pp --emit=ast | FileCheck %t/named.pp --check-prefix=AST
// RUN: not ppcc %t/chunks.pp 2>&1 | FileCheck %t/chunks.pp --implicit-check-not=error:
// RUN: not ppcc %t/ranges.pp 2>&1 | FileCheck %t/ranges.pp --implicit-check-not=error:
// RUN: not ppcc %t/names.pp 2>&1 | FileCheck %t/names.pp --implicit-check-not=error:
// RUN: not ppcc %t/require.pp 2>&1 | FileCheck %t/require.pp --implicit-check-not=error:

//--- named.pp
// CHECK:      rank 0: 0F0 3F0 3B0 0B0 1F1 1B1
// CHECK-NEXT: rank 1: 1F0 2F0 2B0 1B0 0F1 0B1
// AST: Module inner 1 .. 3
schedule named() {
  ranks 2;
  pipe a {
    stages 4; stage s on rank s % 3 == 0 ? 0 : 1;
    microbatches 0 .. 1 pad 2;
    module first stages 0 .. 1;
    module inner stages 1 .. 3;
    module last  stages 3 .. 4;
  }
  pipe b { stages 2; stage s on rank 1 - s; microbatches 1 .. 2; module whole stages 0 .. 2; }
  fn end(first_of_it: bool, x: pipe, y: pipe) = first_of_it ? x : y;
  on rank r {
    if r == 0 { F(end(1 == 1, first, last)); F(last); B(last); B(end(1 == 2, last, first)); }
    else      { F(0); F(1); B(1); B(0); }
    if padded(whole) == 1 and padded(inner) == 2 and issued(F, whole) == 0 and whole != b { F(whole); B(b); }
  }
}

//--- chunks.pp
schedule chunks() {
  ranks 2; microbatches 1; placement loop(2);
  module low stages 0 .. 1;
  module even stages 0 .. 3;
  on rank r {
    // CHECK: chunks.pp:[[#@LINE+2]]:7: error: rank 0 hosts 2 stages of module `even`, so `F` must say which [E0502]
    // CHECK: chunks.pp:[[#@LINE+2]]:7: error: rank 1 hosts no stage of module `low` [E0503]
    F(even);
    F(low);
  }
}

//--- ranges.pp
schedule ranges() {
  ranks 2; microbatches 1; placement linear;
  // CHECK: ranges.pp:[[#@LINE+1]]:26: error: a stage is 3, but must lie in 1..2 [E0405]
  module far stages 1 .. 3;
  // CHECK: ranges.pp:[[#@LINE+1]]:21: error: a stage is -1, but must lie in 0..2 [E0405]
  module low stages -1 .. 1;
  // CHECK: ranges.pp:[[#@LINE+1]]:30: error: a stage is 0, but must lie in 1..2 [E0405]
  module crossed stages 1 .. 0;
  on rank r { F; B; }
}

//--- names.pp
schedule names() {
  ranks 2; microbatches 1; placement linear;
  module x stages 0 .. 1;
  // CHECK: names.pp:[[#@LINE+1]]:10: error: `x` is defined twice [E0308]
  module x stages 0 .. 1;
  // CHECK: names.pp:[[#@LINE+1]]:19: error: a stage must be int, but this is pipe [E0310]
  module y stages x .. 1;
  // CHECK: names.pp:[[#@LINE+1]]:23: error: unknown name `x` [E0301]
  model { cost F pipe x = 1; }
  on rank r { F; B; }
}

//--- require.pp
schedule needs() {
  ranks 2; microbatches 1; placement linear;
  module x stages 0 .. 1;
  module y stages 1 .. 2;
  // CHECK: require.pp:[[#@LINE+2]]:11: error: `x == y` does not hold [E0404]
  // CHECK: note: `x == y` is false with x = x, y = y
  require x == y;
  on rank r { F; B; }
}
