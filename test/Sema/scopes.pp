// A name is known to the end of the braces around it, below its declaration.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK:      scopes.pp:[[#@LINE+4]]:21: error: unknown name `late` [E0301]
// CHECK-NEXT:   [[#@LINE+3]] | fn outside(x) = x + late;
// CHECK-NEXT:     |                     ^~~~
// CHECK-NEXT: note: names come from parameters, `let`, `for`, `pipe` and `fn`, each declared before its use
fn outside(x) = x + late;
schedule s() {
  // CHECK:      scopes.pp:[[#@LINE+1]]:15: error: unknown name `late` [E0301]
  let early = late;
  let late = 1;
  ranks 1;
  microbatches 1;
  stages 1;
  stage t on rank t * 0;
  for i in 0 .. 0 { edge stage i -> stage i; }
  // CHECK:      scopes.pp:[[#@LINE+1]]:16: error: unknown name `t` [E0301]
  let of_map = t;
  // CHECK:      scopes.pp:[[#@LINE+1]]:17: error: unknown name `i` [E0301]
  let of_loop = i;
  // CHECK:      scopes.pp:[[#@LINE+1]]:17: error: unknown name `number` [E0301]
  let of_rank = number;
  on rank number {
    repeat 1 { let inner = 1; F; }
    // CHECK:      scopes.pp:[[#@LINE+1]]:19: error: unknown name `inner` [E0301]
    let of_body = inner;
    for k in 0 .. 1 { B; }
    // CHECK:      scopes.pp:[[#@LINE+1]]:18: error: unknown name `k` [E0301]
    let of_for = k;
  }
}
