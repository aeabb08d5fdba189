// The layout that a schedule was written for stays with another model; `evenly` cuts anew.
// RUN: ppcc %s --model gpt -D layers=4 -D P=2 | FileCheck %s
// CHECK: "layout": ["Ettt", "tL"]
// RUN: ppcc %s --model gpt -D layers=4 -D P=2 --layout evenly | FileCheck %s --check-prefix=EVEN
// EVEN: "layout": ["Ett", "ttL"]
// RUN: not ppcc %s --model gpt -D layers=5 -D P=2 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: own-layout.pp:[[#@LINE+3]]:19: error: layer 5 of the layout is `L`, but the model has `t` [E0463]
schedule own(P: int = 2, M: int = 2) {
  ranks P; microbatches M; placement linear;
  model { layout "Et*3|tL"; }
  on rank r { repeat M { F; } repeat M { B; } }
}
