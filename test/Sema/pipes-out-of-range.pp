// Each pipe says what is wrong with its numbers.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s() {
  ranks 2;
  // CHECK:      pipes-out-of-range.pp:[[#@LINE+4]]:50: error: the first microbatch is -1, but must be in 0..4294967293 [E0405]
  // CHECK-NEXT:   [[#@LINE+3]] |   pipe negative { placement linear; microbatches -1 .. 2; }
  // CHECK-NEXT:     |                                                  ^~
  // CHECK-NEXT: note: check the values of the parameters
  pipe negative { placement linear; microbatches -1 .. 2; }
  // CHECK:      pipes-out-of-range.pp:[[#@LINE+1]]:52: error: the end of the microbatches is 3, but must be in 4..4294967294 [E0405]
  pipe empty { placement linear; microbatches 3 .. 3; }
  // CHECK:      pipes-out-of-range.pp:[[#@LINE+1]]:56: error: the end of the microbatches is 5, but must be in 10..4294967294 [E0405]
  pipe backwards { placement linear; microbatches 9 .. 5; }
  // CHECK:      pipes-out-of-range.pp:[[#@LINE+1]]:32: error: `V` is 0, but must be at least 1 [E0480]
  pipe chunks { placement wave(0); microbatches 20 .. 21; }
  // CHECK:      pipes-out-of-range.pp:[[#@LINE+1]]:15: error: the number of stages is 65536, but must be in 1..65534 [E0405]
  pipe many { placement loop(32768); microbatches 21 .. 22; }
  // CHECK:      pipes-out-of-range.pp:[[#@LINE+1]]:22: error: the number of stages is 0, but must be in 1..65534 [E0405]
  pipe none { stages 0; stage s on rank s; microbatches 22 .. 23; }
  on rank r { }
}
