schedule pair() {
  ranks 1; microbatches 1; placement linear;
  layer expert { F: a @ comp -> b @ comm; B: b @ comm -> a @ comp; }
  stage graph s { repeat 2 { layer expert; } F: per layer -> loss @ comp; B: per layer down; }
  overlap (F, B) { per layer { B.b; F.a; B.a; F.b; } F.loss; }
  on rank r { F; B; }
}
