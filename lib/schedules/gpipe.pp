// All forwards, then all backwards (GPipe, arXiv 1811.06965).
schedule gpipe(P: int >= 1 = 4, M: int >= 1 = 8) {
  ranks P;
  microbatches M;
  placement linear;

  on rank r {
    phase warmup   { repeat M { F; } }
    phase cooldown { repeat M { B; } }
  }
}
