// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
schedule s() {
  // CHECK: ranks-unknown.pp:[[#@LINE+1]]:11: error: `ranks` is not known here [E0481]
  let n = ranks;
  ranks 2; microbatches n; placement linear;
  on rank r { F; B; }
}
