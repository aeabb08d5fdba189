// All forwards, then all backwards (GPipe, arXiv 1811.06965).
schedule gpipe(P: int = 4, M: int = 8) {
  require P >= 1 and M >= 1, "needs a rank and a microbatch";
  ranks P;
  microbatches M;
  placement linear;

  on rank r {
    phase warmup   { repeat M { F; } }
    phase cooldown { repeat M { B; } }
  }
}
