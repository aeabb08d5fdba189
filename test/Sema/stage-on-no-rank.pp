// Each stage is on a rank that exists.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s(P: int = 3) {
  ranks P; microbatches 1;
  stages 2 * P;
  // CHECK:      stage-on-no-rank.pp:[[#@LINE+4]]:19: error: stage 4 is on rank 3, but ranks are 0..2 [E0409]
  // CHECK-NEXT:   [[#@LINE+3]] |   stage s on rank s < 4 ? s % P : P;
  // CHECK-NEXT:     |                   ^~~~~~~~~~~~~~~~~
  // CHECK-NEXT: note: place each stage on a rank that exists
  stage s on rank s < 4 ? s % P : P;
  on rank r { }
}
