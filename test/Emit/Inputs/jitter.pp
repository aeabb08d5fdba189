schedule jitter(P: int = 2, M: int = 4) {
  ranks P;
  microbatches M;
  placement linear;
  model {
    cost F = 2;
    jitter all = 0.1;
    jitter F stage s = s == 0 ? 0.2 : 0.1;
    jitter microbatch = 0.05;
    jitter device = 0.1;
    jitter message = 0.5;
  }
  on rank r { repeat M { F; } repeat M { B; } }
}
