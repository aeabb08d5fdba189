// 1F1B whose forwards overlap backwards, with twice the warm-up (PP-Schedule-Visualization).
schedule one_f_one_b_overlap(P: int >= 1 = 4, M: int >= 1 = 8) {
  ranks P;
  microbatches M;
  placement linear;

  on rank r {
    let w = min(2 * (P - 1 - r) + 1, M);
    phase warmup   { repeat w     { F; } }
    phase steady   { repeat M - w { overlap { F; B; } } }
    phase cooldown { repeat w     { B; } }
  }
}
