// Parts of a model: their stages in actions and counters, as values, and what they cannot be.
// RUN: split-file %s %t
// RUN: ppcc %t/named.pp --comm-order=none --emit=actions | FileCheck %t/named.pp --match-full-lines
// RUN: ppcc %t/named.pp --emit=ast | FileCheck %t/named.pp --check-prefix=AST
// RUN: ppcc %t/two.pp --comm-order=none --emit=actions | FileCheck %t/two.pp --match-full-lines
// RUN: ppcc %t/two.pp --emit=ir --comm-order=none | FileCheck %t/two.pp --check-prefix=IR
// RUN: ppcc %t/used.pp --comm-order=none --emit=actions | FileCheck %t/used.pp --match-full-lines
// RUN: not ppcc %t/chunks.pp 2>&1 | FileCheck %t/chunks.pp --implicit-check-not=error:
// RUN: not ppcc %t/stages.pp 2>&1 | FileCheck %t/stages.pp --implicit-check-not=error:
// RUN: not ppcc %t/more.pp 2>&1 | FileCheck %t/more.pp --implicit-check-not=error:
// RUN: not ppcc %t/names.pp 2>&1 | FileCheck %t/names.pp --implicit-check-not=error:
// RUN: not ppcc %t/require.pp 2>&1 | FileCheck %t/require.pp --implicit-check-not=error:
// RUN: not ppcc %t/sequence.pp 2>&1 | FileCheck %t/sequence.pp --implicit-check-not=error:
// RUN: ppcc %t/stages-alone.pp --comm-order=none --emit=actions | FileCheck %t/stages-alone.pp --match-full-lines
// RUN: not ppcc %t/stages-alone.pp --layout evenly 2>&1 | FileCheck %t/require.pp --check-prefix=NOTHING
// RUN: not ppcc %t/two.pp --model %t/missing.pp 2>&1 | FileCheck %t/missing.pp --implicit-check-not=error:

//--- named.pp
// CHECK:      rank 0: 0F0 3F0 3B0 0B0
// CHECK-NEXT: rank 1: 1F0 2F0 2B0 1B0
// AST: Named part inner
schedule named() {
  ranks 2; microbatches 1 pad 2; stages 4; stage s on rank s % 3 == 0 ? 0 : 1;
  model {
    layer t { static = 1; }
    part first { layers t; stages 1; }
    part inner { layers t * 4; stages 2; reads first; }
    part last  { layers t reads inner; }
  }
  fn end(first_of_it: bool, x: part, y: part) = first_of_it ? x : y;
  on rank r {
    if r == 0 { F(end(1 == 1, first, last)); F(last); B(last); B(end(1 == 2, last, first)); }
    else      { F(0); F(1); B(1); B(0); }
    if r == 0 and (padded(inner) != 2 or issued(B, last) != 1 or first == last) { F(first); }
  }
}

//--- two.pp
// Pipes of different lengths are cut by themselves: 3 + 1 stages of 6 and 2 layers, and 1 + 1.
// CHECK:      rank 0: 0F0 3F0 3B0 0B0 0F1 0B1
// CHECK-NEXT: rank 1: 1F0 2F0 2B0 1B0 1F1 1B1
// IR: "static": {"a": [20,20,20,20], "b": [60,20]}
schedule two() {
  ranks 2;
  pipe a { stages 4; stage s on rank s % 3 == 0 ? 0 : 1; microbatches 0 .. 1; }
  pipe b { placement linear; microbatches 1 .. 2; }
  model {
    layer t { static = 10; }
    part body { layers t * 6; }
    part head { layers t * 2 reads body; }
  }
  on rank r {
    if r == 0 { F(0); F(1); B(1); B(0); F(2); B(2); }
    else      { F(0); F(1); B(1); B(0); F(2); B(2); }
  }
}

//--- used.pp
import "named.pp";
// CHECK:      rank 0: 0F0 3F0 3B0 0B0
schedule used() { import named(); }

//--- chunks.pp
schedule chunks() {
  ranks 2; microbatches 1; placement loop(3);
  model {
    layer t { static = 1; }
    part even { layers t * 5; stages 5; }
    part low { layers t reads even; }
  }
  on rank r {
    // CHECK: chunks.pp:[[#@LINE+2]]:19: error: rank 0 hosts no stage of part `low` [E0503]
    // CHECK: chunks.pp:[[#@LINE+1]]:36: error: rank 1 hosts 2 stages of part `even`, so `F` must say which [E0502]
    if r == 0 { F(low); } else { F(even); }
  }
}

//--- stages.pp
schedule ranges() {
  ranks 2; microbatches 1; placement linear;
  model {
    layer t { static = 1; }
    // CHECK: stages.pp:[[#@LINE+1]]:33: error: the number of stages is 3, but must be in 1..2 [E0405]
    part far { layers t; stages 3; }
    part near { layers t reads far; }
  }
  on rank r { F; B; }
}

//--- more.pp
schedule more() {
  ranks 2; microbatches 1; placement linear;
  model {
    layer t { static = 1; }
    part a { layers t; }
    part b { layers t reads a; }
    // CHECK: more.pp:[[#@LINE+1]]:5: error: the parts have 3 stages, but the pipe has 2 [E0465]
    part c { layers t reads b; }
  }
  on rank r { F; B; }
}

//--- names.pp
schedule names() {
  ranks 2; microbatches 1; placement linear;
  model {
    layer t { static = 1; }
    part x { layers t; }
    part x { layers t; } // Found below, where the schedule takes the names.
    // CHECK: names.pp:[[#@LINE+1]]:33: error: `z` is not a part declared before this one{{.*}} [E0460]
    part y { layers t; reads x, z; }
    // CHECK: names.pp:[[#@LINE+1]]:14: error: unknown name `y`{{.*}} [E0301]
    static = y;
  }
  // CHECK: names.pp:[[#@LINE-6]]:10: error: `x` is defined twice [E0308]
  // CHECK: names.pp:[[#@LINE+1]]:7: error: `y` is defined twice [E0308]
  let y = 1;
  on rank r { F; B; }
}

//--- require.pp
schedule needs() {
  ranks 2; microbatches 1; placement linear;
  model { layer t { static = 1; } part x { layers t; } part y { layers t reads x; } }
  // CHECK: require.pp:[[#@LINE+2]]:11: error: `x == y` does not hold [E0404]
  // CHECK: note: `x == y` is false with x = x, y = y
  require x == y;
  // NOTHING: --layout: error: the model has no layers that could be cut [E0318]
  on rank r { F; B; }
}

//--- missing.pp
// CHECK: two.pp:{{.*}}: error: model `other` has no part `body`, which the schedule names [E0467]
model other() { layer t { static = 1; } part trunk { layers t * 2; } }
schedule none() { ranks 1; microbatches 1; placement linear; on rank r { F; B; } }

//--- sequence.pp
// CHECK: sequence.pp:[[#@LINE+3]]:3: error: this model has no `layers`, the sequence of its layers [E0318]
schedule sequence() {
  ranks 1; microbatches 1; placement linear;
  model { layer t { cost F = 2; } }
  on rank r { F; B; }
}

//--- stages-alone.pp
// Parts may have no layers, and are names for stages then.
// CHECK:      rank 0: 0F0 0B0
// CHECK-NEXT: rank 1: 1F0 2F0 2B0 1B0
schedule alone() {
  ranks 2; microbatches 1; stages 3; stage s on rank min(s, 1);
  model { part a { stages 1; } part b { stages 1; reads a; } part c { reads b; } }
  on rank r { if r == 0 { F(a); B(a); } else { F(b); F(c); B(c); B(b); } }
}
