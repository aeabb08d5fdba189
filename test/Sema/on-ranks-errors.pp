// What says which ranks is a number, a list or a condition with one name for the rank.
// RUN: not ppcc %s 2>&1 | FileCheck %s --implicit-check-not=error:

schedule s(P: int = 2) {
  ranks P; microbatches 1; placement linear;
  // CHECK: on-ranks-errors.pp:[[#@LINE+9]]:3: error: a second `on rank` where one is for all ranks [E0317]
  // CHECK: on-ranks-errors.pp:[[#@LINE+1]]:20: error: unknown name `Q`
  on ranks r < P - Q { F; B; }
  // CHECK: on-ranks-errors.pp:[[#@LINE+1]]:12: error: what says which ranks must be a condition or a list, but this is int [E0310]
  on ranks P + 1 { F; B; }
  // CHECK: on-ranks-errors.pp:[[#@LINE+1]]:11: error: a rank must be int, but this is bool [E0310]
  on rank true { F; B; }
  // CHECK: on-ranks-errors.pp:[[#@LINE+1]]:12: error: `issued` is known only inside `on rank` [E0313]
  on ranks issued(F) == 0 { F; B; }
  on rank r { F; B; }
}
