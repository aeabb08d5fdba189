// `on rank last { }` is not for all ranks because `last` has a value: it is refused.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: sed 's/on rank last/on ranks [last]/' %s >%t.pp && ppcc %t.pp --comm-order=none --emit=actions | FileCheck %s --check-prefix=LIST

schedule s(P: int = 2) {
  ranks P; microbatches 1; placement linear;
  let last = P - 1;
  on rank 0 { F; B; }
  // CHECK:      on-rank-constant.pp:[[#@LINE+4]]:11: error: `last` is already a value; `on rank` needs a new name [E0353]
  // CHECK:      on-rank-constant.pp:[[#@LINE-3]]:7: note: declared here
  // CHECK:      on-rank-constant.pp:[[#@LINE+2]]:3: note: did you mean `on ranks [last]`?
  // LIST:      rank 1: 1F0 1B0
  on rank last { F; B; }
}
