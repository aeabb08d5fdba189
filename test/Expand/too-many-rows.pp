// The limit on actions counts what is laid out, padding included.
// RUN: not ppcc %s --max-actions=5 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: ppcc %s --max-actions=6 --comm-order=none --emit=actions | FileCheck %s --check-prefix=FINE
// RUN: not ppcc %s -D again=1000000000 --max-actions=1000 2>&1 | FileCheck %s --check-prefix=PADDING

schedule s(again: int = 0) {
  ranks 1; microbatches 1 pad 2; placement linear;
  on rank r {
    repeat 2 { F; I; }
    // PADDING: too-many-rows.pp:[[#@LINE+1]]:20: error: the schedule has 1001 actions, more than the limit of 1000 [E0412]
    repeat again { I(mb: 1); }
    // CHECK:      too-many-rows.pp:[[#@LINE+5]]:5: error: the schedule has 6 actions, more than the limit of 5 [E0412]
    // CHECK-NEXT:   [[#@LINE+4]] |     drain W;
    // CHECK-NEXT:      |     ^~~~~
    // CHECK-NEXT: note: `--max-actions=N` raises the limit; an action takes 16 bytes
    // FINE: rank 0: 0F0 0I0 0W0{{$}}
    drain W;
  }
}
