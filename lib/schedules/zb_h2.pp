// Twice ZB-H1's warm-up; no bubble while F, I and W cost the same (ZB-H2, arXiv 2401.10241). Alias: zbh2.
schedule zb_h2(P: int >= 1 = 4, M: int >= 1 = 8) {
  ranks P;
  microbatches M;
  placement linear;

  on rank r {
    let w = min(2 * (P - r) - 1, M);
    phase warmup { repeat w { F; } }
    defer W lag 2 * r {
      phase steady   { repeat M - w { B; F; } }
      phase cooldown { repeat w     { B; } }
    }
    drain W;
  }
}
