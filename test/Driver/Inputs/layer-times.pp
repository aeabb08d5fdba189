schedule layers(M: int = 1) {
  ranks 2; microbatches M; placement linear;
  model {
    layer t { cost F = 1; cost B = 2; }
    layer E { cost F = 1; cost B = 2; }
    layers E, t * 4;
  }
  on rank r { repeat M { F; } repeat M { B; } }
}
