schedule pipes(P: int = 2, M: int = 4) {
  ranks P;
  pipe down { stages P; stage s on rank s;         microbatches 0 .. M / 3; }
  pipe up   { stages P; stage s on rank P - 1 - s; microbatches M / 3 .. M; }
  on rank r { }
}
