// 1F1B's memory and a third of its bubble (ZB-H1, arXiv 2401.10241). Alias: zbh1.
schedule zb_h1(P: int >= 1 = 4, M: int >= 1 = 8) {
  ranks P;
  microbatches M;
  placement linear;

  on rank r {
    let w = min(P - r, M);
    phase warmup { repeat w { F; } }
    defer W lag r {
      phase steady   { repeat M - w { B; F; } }
      phase cooldown { repeat w     { B; } }
    }
    drain W;
  }
}
