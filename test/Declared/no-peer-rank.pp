// The other end is on another rank, one with a stage in the pipe.
// RUN: not ppcc %s:here 2>&1 | FileCheck %s --check-prefix=HERE
// RUN: not ppcc %s:beyond 2>&1 | FileCheck %s --check-prefix=BEYOND
// RUN: not ppcc %s:apart 2>&1 | FileCheck %s --check-prefix=APART
// RUN: not ppcc %s:grouped 2>&1 | FileCheck %s --check-prefix=GROUPED
// RUN: not ppcc %s:zero 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: ppcc %s:both_ways --transport=buffered,rendezvous,stream --check
action SELF    { to rank r for rank r; after F; }
// HERE: no-peer-rank.pp:[[#@LINE-1]]:26: error: the peer of `0SELF0` on rank 0 is rank 0, the same [E0510]
action NEXT    { to rank r + 1 for rank r; after F; }
// BEYOND: :[[#@LINE-1]]:26: error: the peer of `1NEXT0` on rank 1 is rank 2, and there are 2 ranks [E0510]
action LAST    { from rank 2; after F; }
// APART: :[[#@LINE-1]]:28: error: the peer of `0LAST0` on rank 0 is rank 2, which hosts no stage of pipe `main` [E0510]
// APART: note: {{.*}} weights stay where they are
action OTHER   { to rank 1 - r for rank r; lane peer; after F; }
action DIVIDES { to rank 1 / r for rank r; lane peer; after F; }
// ZERO: :[[#@LINE-1]]:28: error: division by zero in `/` [E0407]

schedule here() { ranks 2; microbatches 1; placement linear; on rank r { F; SELF; B; } }
schedule beyond() { ranks 2; microbatches 1; placement linear; on rank r { F; NEXT; B; } }
schedule apart() {
  ranks 3; microbatches 1; stages 2; stage s on rank s;
  on rank r { if r < 2 { F; LAST; B; } }
}
schedule grouped() {
  ranks 2; microbatches 2; placement linear;
  on rank r { F; overlap { F; OTHER(mb: 0); } B; B; }
}
// GROUPED: :[[#@LINE-2]]:31: error: `0OTHER0>1` and `0F1` cannot be in one group [E0842]
schedule zero() { ranks 2; microbatches 1; placement linear; on rank r { F; DIVIDES; B; } }
schedule both_ways() {
  ranks 2; microbatches 2; placement linear;
  on rank r { F; F; OTHER(mb: 0); OTHER(mb: 1); B; B; }
}
