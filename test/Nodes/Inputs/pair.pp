schedule pair() {
  ranks 1; microbatches 1; placement linear;
  model {
    layer expert { F: a @ comp -> b @ comm; B: b @ comm -> a @ comp; }
    layer head { F: loss @ comp; }
    layers expert * 2, head;
    overlap F, B { each expert { B.b; F.a; B.a; F.b; } F.loss; }
  }
  on rank r { F; B; }
}
