// A name for each stage, rank or microbatch that hides another is a warning, as that of a loop is.
// RUN: ppcc %s --check 2>&1 | FileCheck %s --implicit-check-not=warning:
action R { after F; before B; }
schedule s(P: int = 2, m: int = 1) {
  ranks P; microbatches m; stages P;
  // CHECK: shadowed-variable.pp:[[#@LINE+1]]:9: warning: `P` shadows another `P` [E0327]
  stage P on rank P;
  // CHECK: shadowed-variable.pp:[[#@LINE+1]]:36: warning: `m` shadows another `m` [E0327]
  insert R before B for microbatch m when m > 3;
  on rank r { F; B; }
}
