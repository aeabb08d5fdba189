schedule numbered() {
  ranks 1; microbatches 1; placement linear;
  backward when false;
  model {
    layer plain { F: recv @ comp -> mlp @ comp; }
    layers plain * 2;
  }
  on rank r { F; }
}
