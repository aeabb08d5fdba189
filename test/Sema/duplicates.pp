// Each part of a schedule stands in it once.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  ranks 1;
  // CHECK:      duplicates.pp:[[#@LINE+7]]:3: error: a second `ranks` [E0317]
  // CHECK-NEXT:   [[#@LINE+6]] |   ranks 2;
  // CHECK-NEXT:     |   ^~~~~
  // CHECK-NEXT: duplicates.pp:[[#@LINE-4]]:3: note: the first is here
  // CHECK-NEXT:   [[#@LINE-5]] |   ranks 1;
  // CHECK-NEXT:     |   ^~~~~
  // CHECK-NEXT: note: keep one of them
  ranks 2;
  microbatches 1;
  // CHECK:      duplicates.pp:[[#@LINE+2]]:3: error: a second `microbatches` [E0317]
  // CHECK:      duplicates.pp:[[#@LINE-2]]:3: note: the first is here
  microbatches 2;
  placement linear;
  // CHECK:      duplicates.pp:[[#@LINE+2]]:3: error: a second `placement` [E0317]
  // CHECK:      duplicates.pp:[[#@LINE-2]]:3: note: the first is here
  placement v;
  backward when true;
  // CHECK:      duplicates.pp:[[#@LINE+2]]:3: error: a second `backward` [E0317]
  // CHECK:      duplicates.pp:[[#@LINE-2]]:3: note: the first is here
  backward when false;
  // CHECK:      duplicates.pp:[[#@LINE+2]]:23: error: a second `cost F` [E0317]
  // CHECK:      duplicates.pp:[[#@LINE+1]]:11: note: the first is here
  model { cost F = 1; cost F = 2; cost F stage s = 3; }
  // CHECK:      duplicates.pp:[[#@LINE+2]]:3: error: a second `model` [E0317]
  // CHECK:      duplicates.pp:[[#@LINE-2]]:3: note: the first is here
  model { }
  // CHECK:      duplicates.pp:[[#@LINE+2]]:22: error: a second `order` [E0317]
  // CHECK:      duplicates.pp:[[#@LINE+1]]:10: note: the first is here
  comm { order none; order sweep; }
  // CHECK:      duplicates.pp:[[#@LINE+2]]:3: error: a second `comm` [E0317]
  // CHECK:      duplicates.pp:[[#@LINE-2]]:3: note: the first is here
  comm { }
  on rank r { F; B; }
  // CHECK:      duplicates.pp:[[#@LINE+2]]:3: error: a second `on rank` [E0317]
  // CHECK:      duplicates.pp:[[#@LINE-2]]:3: note: the first is here
  on rank q { F; B; }
}
schedule t() {
  ranks 1;
  microbatches 1;
  stages 1;
  // CHECK:      duplicates.pp:[[#@LINE+2]]:3: error: a second `stages` [E0317]
  // CHECK:      duplicates.pp:[[#@LINE-2]]:3: note: the first is here
  stages 2;
  stage s on rank 0;
  // CHECK:      duplicates.pp:[[#@LINE+2]]:3: error: a second `stage ... on rank` [E0317]
  // CHECK:      duplicates.pp:[[#@LINE-2]]:3: note: the first is here
  stage s on rank 0;
  on rank r { F; B; }
}
schedule u() {
  ranks 1;
  microbatches 1;
  stages 1;
  // CHECK:      duplicates.pp:[[#@LINE+2]]:3: error: a second way to place the stages [E0317]
  // CHECK:      duplicates.pp:[[#@LINE-2]]:3: note: the first is here
  placement linear;
  on rank r { F; B; }
}
