// Ranks may have bodies of their own; each has one.
// RUN: ppcc %s:parts --comm-order=none --emit=actions | FileCheck %s --check-prefix=PARTS --match-full-lines
// RUN: not ppcc %s:twice 2>&1 | FileCheck %s --check-prefix=TWICE --implicit-check-not=error:
// RUN: not ppcc %s:without 2>&1 | FileCheck %s --check-prefix=WITHOUT --implicit-check-not=error:
// RUN: not ppcc %s:beyond 2>&1 | FileCheck %s --check-prefix=BEYOND

// PARTS:      rank 0: 0F0 0F1 0B0 0B1
// PARTS-NEXT: rank 1: 1F0 1B0 1F1 1B1
// PARTS-NEXT: rank 2: 2F0 2B0 2F1 2B1
// PARTS-NEXT: rank 3: 3F0 3B0 3F1 3B1
schedule parts(P: int = 4) {
  ranks P; microbatches 2; placement linear;
  let last = P - 1;
  on rank 0 { repeat 2 { F; } repeat 2 { B; } }
  on rank q where q > 0 and q < last { repeat 1 { F; B; } repeat q / q { F; B; } }
  on ranks [P - 1] { repeat 2 { F; B; } }
}

schedule twice() {
  ranks 3; microbatches 1; placement linear;
  on rank 1 { F; B; }
  // TWICE:      on-ranks.pp:[[#@LINE+2]]:19: error: rank 1 has two bodies [E0482]
  // TWICE:      on-ranks.pp:[[#@LINE-2]]:11: note: the other is here
  on rank r where r < 3 { F; B; }
}

// WITHOUT: on-ranks.pp:[[#@LINE+1]]:10: error: rank 2 has no body [E0483]
schedule without() {
  ranks 3; microbatches 1; placement linear;
  on ranks [0, 1] { F; B; }
}

schedule beyond() {
  ranks 2; microbatches 1; placement linear;
  on rank 0 { F; B; }
  // BEYOND: on-ranks.pp:[[#@LINE+1]]:11: error: the rank is 2, but must be in 0..1 [E0405]
  on rank 1 + 1 { F; B; }
}
