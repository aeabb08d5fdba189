// No order is below the lower bound where groups run on lanes: a group takes no less than its members on one of them.
// RUN: ppcc %s:inner --emit=report | FileCheck %s --check-prefix=INNER
// RUN: ppcc %s:mixed --emit=report | FileCheck %s --check-prefix=MIXED
// RUN: ppcc %s:alone --emit=report | FileCheck %s --check-prefix=ALONE

// Costs of nodes in a layer: 2 + 3 * 2 + 2, of which `comp` works 8.
schedule inner(M: int = 4) {
  ranks 1; microbatches M; placement linear;
  model {
    layer h {
      F: a @ comp -> b @ comm; B: b @ comm -> a @ comp;
      cost F.a = 1; cost F.b = 1; cost B.a = 1; cost B.b = 1;
    }
    layers h;
  }
  on rank r { F; repeat M - 1 { overlap { F; B; } } B; }
}
// INNER:      makespan 10
// INNER:      resources 8 (lower bound of every order; the makespan is 25.00 % above it)
// INNER-NEXT: rank 0 starts at 0 and works for 8

// Costs of nodes in the model, and a time of groups in which not all have nodes: 4 + 3 * 1 + 4.
schedule mixed(M: int = 4) {
  ranks 1; microbatches M; placement linear;
  model { layer h { F: a @ comp; } layers h; cost F.a = 4; cost B = 4; cost overlap = 1; }
  on rank r { F; repeat M - 1 { overlap { F; B; } } B; }
}
// MIXED: makespan 11
// MIXED: resources 4 (lower bound

// An F by itself follows a pattern that makes it wait, but not one in a group.
schedule alone(M: int = 2) {
  ranks 1; microbatches M; placement linear;
  model {
    layer h {
      F: a @ comp -> b @ comm; F: c @ comm; B: d @ comp;
      cost F.a = 4; cost F.b = 1; cost F.c = 4; cost B.d = 1;
    }
    layers h;
    overlap F { F.a; F.b; F.c; }
    overlap F, B { F.c; F.a; F.b; B.d; }
  }
  on rank r { F; repeat M - 1 { overlap { F; B; } } B; }
}
// ALONE: makespan 15
// ALONE: resources 10 (lower bound
