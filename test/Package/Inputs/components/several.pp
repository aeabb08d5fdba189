schedule first() {
  ranks 1; microbatches 1; placement linear;
  on rank r { F; B; }
}
schedule second(M: int = 2) {
  ranks 1; microbatches M; placement linear;
  on rank r { repeat M { F; B; } }
}
