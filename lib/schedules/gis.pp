// Interleaved 1F1B in which a chunk starts `k` slots after the one before, which needs less memory (GIS, arXiv 2503.01328).
schedule gis(P: int >= 1 = 4, M: int >= 1 = 8, V: int >= 1 = 2, k: int >= 1 = (P + 1) / 2) {
  ranks P;
  microbatches M;
  placement loop(V);

  // The slot of chunk c of the first microbatch; that of the next one is V later. No two chunks share one.
  let common = max([V % g == 0 and k % g == 0 ? g : 1 for g in 1 .. V + 1]);
  fn slot(c) = k * c + c / (V / common);
  fn due(slots) = slots >= 0 and slots % V == 0 and slots / V < M;

  on rank r {
    let back = slot(V - 1) + P - 1 - r; // the slot of the first backward
    for t in 0 .. V * M + back + slot(V - 1) {
      for c in 0 .. V { if due(t - slot(c))        { F(c); } }
      for c in 0 .. V { if due(t - back - slot(c)) { B(V - 1 - c); } }
    }
  }
}
