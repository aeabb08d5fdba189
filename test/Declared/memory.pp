// Recomputation moves what a forward keeps to just before the backward; offloads give it back for a while.
// RUN: ppcc %s --emit=report | FileCheck %s --check-prefix=KEPT
// RUN: ppcc %s --with=recompute --emit=report | FileCheck %s --check-prefix=RECOMPUTED
// RUN: ppcc %s --with='recompute(1, 1)' --emit=report | FileCheck %s --check-prefix=HALF
// RUN: ppcc %s --with=offload --emit=report | FileCheck %s --check-prefix=OFFLOADED
// RUN: not ppcc %s --with='recompute(1, 1)' -D limit=2 2>&1 | FileCheck %s --check-prefix=LIMIT

// Four activations wait at the end of the forwards.
// KEPT: makespan 12
// KEPT: rank busy span idle activations memory
// KEPT-NEXT: 0 12 12 0 4 4 3 0F3
// Each of one unit lives from R to the end of B; a forward holds its own while it runs.
// RECOMPUTED: makespan 16
// RECOMPUTED: 0 16 16 0 4 1 0 0F0
// Half of them are kept, beside the one that is there again.
// HALF: makespan 14
// HALF: 0 14 14 0 4 3 3 0F3
// The copy to the host takes half a unit, beside the next forward, which holds its own.
// OFFLOADED: 0 12 12.5 0.5 4 2 1 0F1
// LIMIT: error: rank 0 holds 3 at time 3, more than the limit of 2 [E1010]
schedule memory(M: int = 4, limit: int = 100) {
  ranks 1; microbatches M; placement linear;
  cluster { limit = limit; }
  on rank r { repeat M { F; } repeat M { B; } }
}
