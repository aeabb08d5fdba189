// Two forwards for each stage after a rank, so that it need not wait for gradients.
import "parts/warmup.pp";

schedule two_ahead(P: int = 4, M: int = 8) {
  require P >= 1 and M >= 2 * P, "needs at least 2 * P microbatches";
  ranks P;
  microbatches M;
  placement linear;
  on rank r {
    let w = warmup(r, P);
    phase warmup   { repeat w     { F; } }
    phase steady   { repeat M - w { F; B; } }
    phase cooldown { repeat w     { B; } }
  }
}

// It works for one rank, for few and for many, and cannot hang when sends wait for receives.
// RUN: ppcc %s --check -D P=1 -D M=2
// RUN: ppcc %s --check -D P=2 -D M=4 --transport=rendezvous
// RUN: ppcc %s --check -D P=16 -D M=64 --transport=rendezvous
