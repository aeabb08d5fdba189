// Each place takes one type; an int serves as a float.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

fn half(x: float) = x / 2.0;
fn side(p: pipe, c: bool) = c ? 1 : 2;
// CHECK:      types.pp:[[#@LINE+10]]:21: error: the default value must be int, but this is bool [E0310]
// CHECK-NEXT:   [[#@LINE+9]] | schedule s(P: int = true, q: bool = 1, f: float = 1, g: pipe, h) {
// CHECK-NEXT:     |                     ^~~~
// CHECK-NEXT: note: write an expression of that type
// CHECK:      types.pp:[[#@LINE+6]]:37: error: the default value must be bool, but this is int [E0310]
// CHECK:      types.pp:[[#@LINE+5]]:57: error: a parameter must be int, bool, float or int[], but this is pipe [E0310]
// CHECK:      types.pp:[[#@LINE+4]]:63: error: expected a type after the name of a parameter, such as `: int` [E0203]
// CHECK-NEXT:   [[#@LINE+3]] | schedule s(P: int = true, q: bool = 1, f: float = 1, g: pipe, h) {
// CHECK-NEXT:     |                                                               ^
// CHECK-NEXT: note: see docs/language.md for the form of each construct
schedule s(P: int = true, q: bool = 1, f: float = 1, g: pipe, h) {
  // CHECK:      types.pp:[[#@LINE+1]]:11: error: the condition of `require` must be bool, but this is int [E0310]
  require P;
  // CHECK:      types.pp:[[#@LINE+1]]:9: error: the number of ranks must be int, but this is float [E0310]
  ranks 1.5;
  // CHECK:      types.pp:[[#@LINE+1]]:26: error: this argument must be float, but this is bool [E0310]
  let a = half(2) + half(true);
  // CHECK:      types.pp:[[#@LINE+1]]:19: error: the other side of `?:` must be int, but this is bool [E0310]
  let b = q ? 1 : false;
  // CHECK:      types.pp:[[#@LINE+1]]:11: error: the condition of `?:` must be bool, but this is int [E0310]
  let c = P ? 1 : 2;
  // CHECK:      types.pp:[[#@LINE+1]]:16: error: this argument must be pipe, but this is int [E0310]
  let d = side(1, true);
  // CHECK:      types.pp:[[#@LINE+1]]:18: error: this argument must be a number, but this is bool [E0310]
  let e = min(1, q);
  // CHECK:      types.pp:[[#@LINE+1]]:17: error: the condition of `backward` must be bool, but this is int [E0310]
  backward when 1;
  // CHECK:      types.pp:[[#@LINE+1]]:10: error: the number of stages must be int, but this is float [E0310]
  stages 2.0;
  // CHECK:      types.pp:[[#@LINE+1]]:19: error: a rank must be int, but this is bool [E0310]
  stage s on rank q;
  // CHECK:      types.pp:[[#@LINE+3]]:16: error: a number of microbatches must be int, but this is float [E0310]
  // CHECK:      types.pp:[[#@LINE+2]]:23: error: a number of microbatches must be int, but this is bool [E0310]
  // CHECK:      types.pp:[[#@LINE+1]]:29: error: a number of microbatches must be int, but this is float [E0310]
  microbatches 0.5 .. q pad f;
  // CHECK:      types.pp:[[#@LINE+2]]:14: error: a stage must be int, but this is bool [E0310]
  // CHECK:      types.pp:[[#@LINE+1]]:25: error: a stage must be int, but this is float [E0310]
  edge stage q -> stage 1.0;
  // CHECK:      types.pp:[[#@LINE+1]]:12: error: the range of `for` must be int, but this is bool [E0310]
  for i in q .. 2 { }
  on rank r {
    // CHECK:      types.pp:[[#@LINE+1]]:12: error: the count of `repeat` must be int, but this is bool [E0310]
    repeat q { F; }
    // CHECK:      types.pp:[[#@LINE+1]]:19: error: the range of `for` must be int, but this is float [E0310]
    for i in 0 .. 1.5 { F; }
    // CHECK:      types.pp:[[#@LINE+1]]:11: error: the condition of `while` must be bool, but this is int [E0310]
    while 1 { F; }
    // CHECK:      types.pp:[[#@LINE+2]]:8: error: the condition of `if` must be bool, but this is int [E0310]
    // CHECK:      types.pp:[[#@LINE+1]]:25: error: the condition of `if` must be bool, but this is int [E0310]
    if r { F; } else if 0 { B; }
    // CHECK:      types.pp:[[#@LINE+1]]:7: error: a chunk must be an int, a pipe or a part, but this is bool [E0310]
    F(q);
    // CHECK:      types.pp:[[#@LINE+1]]:11: error: the microbatch must be int, but this is bool [E0310]
    B(mb: q);
    // CHECK:      types.pp:[[#@LINE+1]]:17: error: the lag must be int, but this is bool [E0310]
    defer W lag q { B; }
    // CHECK:      types.pp:[[#@LINE+1]]:13: error: a chunk must be an int, a pipe or a part, but this is float [E0310]
    drain W(1.5);
    // CHECK:      types.pp:[[#@LINE+1]]:23: error: a chunk must be an int, a pipe or a part, but this is bool [E0310]
    let n = issued(F, q);
  }
}
