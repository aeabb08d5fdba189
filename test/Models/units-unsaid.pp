// Times of a model and of a cluster are in one unit, said of both or of neither.
// RUN: ppcc check %s --model measured --cluster plain 2>&1 | FileCheck %s --implicit-check-not=warning
// RUN: ppcc check %s --model measured --cluster linked 2>&1 | FileCheck %s --check-prefix=LINK --implicit-check-not=warning
// RUN: ppcc check %s --model bare --cluster said 2>&1 | FileCheck %s --check-prefix=MODEL --implicit-check-not=warning
// RUN: ppcc check %s --model measured --cluster room 2>&1 | FileCheck %s --check-prefix=NONE --implicit-check-not=warning
// RUN: ppcc check %s --model bare --cluster plain 2>&1 | FileCheck %s --check-prefix=NONE --implicit-check-not=warning
// NONE: valid
model measured() { units ms, bytes; cost F = 2; bytes = 1e6; }
// MODEL: units-unsaid.pp:[[#@LINE+1]]:16: warning: the model does not say what its times are in; those of the cluster are in ms [E0490]
model bare() { cost F = 2; bytes = 1e6; }
// CHECK: units-unsaid.pp:[[#@LINE+1]]:19: warning: the cluster does not say what its times are in; those of the model are in ms [E0490]
cluster plain() { bandwidth = 50e9; }
// LINK: units-unsaid.pp:[[#@LINE+1]]:20: warning: the cluster does not say what its times are in; those of the model are in ms [E0490]
cluster linked() { link a, b { latency = a + b; } }
cluster said() { units ms, bytes; bandwidth = 50e6; }
cluster room() { limit = 1e9; }
schedule s() {
  ranks 2;
  microbatches 1;
  placement linear;
  on rank r { F; B; }
}
