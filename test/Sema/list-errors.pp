// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s(P: int = 2, caps: int[] = [1, 2]) {
  // CHECK: list-errors.pp:[[#@LINE+1]]:19: error: an element of the list must be int, but this is bool [E0310]
  require len([1, true]) == 2;
  // CHECK: list-errors.pp:[[#@LINE+1]]:16: error: an element of a list must be an int or a pipe, but this is float [E0310]
  require len([0.5]) == 1;
  // CHECK: list-errors.pp:[[#@LINE+1]]:11: error: what `[ ]` looks into must be a list, but this is int [E0310]
  require P[0] == 1;
  // CHECK: list-errors.pp:[[#@LINE+1]]:16: error: a place in a list must be int, but this is bool [E0310]
  require caps[true] == 1;
  // CHECK: list-errors.pp:[[#@LINE+1]]:16: error: `==` does not apply to int[] [E0311]
  require caps == caps;
  // CHECK: list-errors.pp:[[#@LINE+1]]:15: error: this argument must be a list, but this is int [E0310]
  require len(P) == 1;
  // CHECK: list-errors.pp:[[#@LINE+1]]:11: error: `sum` takes 1 argument, but 2 are given [E0312]
  require sum(caps, caps) == 1;
  ranks P; microbatches 1; placement linear;
  on rank r { F; B; }
}
