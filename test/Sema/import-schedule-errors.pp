// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
import "gpipe.pp";

schedule a() {
  // CHECK: import-schedule-errors.pp:[[#@LINE+1]]:10: error: unknown schedule `gpip`; did you mean `gpipe`? [E0488]
  import gpip();
  ranks 1; microbatches 1; placement linear;
  on rank r { F; B; }
}
// What the missing one would have brought is not missed.
schedule alone(M: int = 2) {
  // CHECK: import-schedule-errors.pp:[[#@LINE+1]]:10: error: unknown schedule `zb_h1` [E0488]
  import zb_h1(4, M);
  // CHECK: note: import the file that declares it, `import "one_f_one_b.pp";` for one of the library
}
schedule b() {
  // CHECK: import-schedule-errors.pp:[[#@LINE+1]]:10: error: unknown schedule `c` [E0488]
  import c(2);
  ranks 1; microbatches 1; placement linear;
  on rank r { F; B; }
}
schedule c(P: int) {
  import gpipe(P, M: 2);
  // CHECK: import-schedule-errors.pp:[[#@LINE+1]]:3: error: a second `ranks` [E0317]
  ranks 2;
  // CHECK: import-schedule-errors.pp:[[#@LINE+1]]:3: error: a second `on rank` [E0317]
  on rank r { F; }
}
schedule d(P: int) {
  // CHECK: import-schedule-errors.pp:[[#@LINE+1]]:16: error: unknown label `R` [E0307]
  import gpipe(R: P);
  // CHECK: import-schedule-errors.pp:[[#@LINE+1]]:3: error: a second way to place the stages: `import` has one [E0317]
  placement v;
}
schedule e() {
  ranks 2;
  // CHECK: import-schedule-errors.pp:[[#@LINE+1]]:3: error: a second order: `import` stands above all that says one [E0317]
  import gpipe();
  microbatches 1; placement linear;
  on rank r { F; B; }
}
