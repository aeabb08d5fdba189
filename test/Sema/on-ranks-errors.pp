// A rank has a name of its own, which a condition is about; a list stands by itself.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s(P: int = 2, k: int = 1) {
  ranks P; microbatches 1; placement linear;
  // CHECK: on-ranks-errors.pp:[[#@LINE+24]]:3: error: a second `on rank` where one is for all ranks [E0317]
  // CHECK: on-ranks-errors.pp:[[#@LINE+1]]:23: error: unknown name `Q`
  on rank r where r < Q { F; B; }
  // CHECK: on-ranks-errors.pp:[[#@LINE+1]]:19: error: the condition of `where` must be bool, but this is int [E0310]
  on rank r where P + 1 { F; B; }
  // CHECK: on-ranks-errors.pp:[[#@LINE+1]]:12: error: what says which ranks must be a list, but this is int [E0310]
  on ranks P + 1 { F; B; }
  // CHECK: on-ranks-errors.pp:[[#@LINE+1]]:11: error: a rank must be int, but this is bool [E0310]
  on rank true { F; B; }
  // CHECK: on-ranks-errors.pp:[[#@LINE+1]]:19: error: `issued` is known only inside `on rank` [E0313]
  on rank r where issued(F) == 0 { F; B; }
  // The hint gives the new form.
  // CHECK:      on-ranks-errors.pp:[[#@LINE+2]]:12: error: missing name for the rank [E0329]
  // CHECK-NEXT: on ranks r > 0
  on ranks r > 0 and r < P - 1 { F; B; }
  // CHECK: on-ranks-errors.pp:[[#@LINE-1]]:3: note: did you mean `on rank r where r > 0 and r < P - 1`?
  // A typo is not the rank, and neither is a value.
  // CHECK: on-ranks-errors.pp:[[#@LINE+1]]:12: error: missing name for the rank [E0329]
  on ranks Q - 1 > r { F; B; }
  // CHECK: on-ranks-errors.pp:[[#@LINE-1]]:3: note: did you mean `on rank r where Q - 1 > r`?
  // CHECK: on-ranks-errors.pp:[[#@LINE+1]]:12: error: missing name for the rank [E0329]
  on ranks k > 0 { F; B; }
  // CHECK: on-ranks-errors.pp:[[#@LINE+1]]:16: error: unknown name `Q`
  on ranks [P, Q] { F; B; }
  on rank r { F; B; }
}
