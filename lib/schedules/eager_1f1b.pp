// 1F1B with twice the warm-up, so that messages overlap with other work (Eager-1F1B, arXiv 2211.05322).
schedule eager_1f1b(P: int >= 1 = 4, M: int >= 1 = 8) {
  ranks P;
  microbatches M;
  placement linear;

  on rank r {
    let w = min(2 * (P - 1 - r), M);
    phase warmup   { repeat w     { F; } }
    phase steady   { repeat M - w { F; B; } }
    phase cooldown { repeat w     { B; } }
  }
}
