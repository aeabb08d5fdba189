// 1F1B's memory and a third of its bubble (ZB-H1, arXiv 2401.10241).
schedule zb_h1(P: int = 4, M: int = 8) {
  require P >= 1 and M >= 1, "needs a rank and a microbatch";
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
