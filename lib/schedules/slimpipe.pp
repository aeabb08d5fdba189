// Interleaved 1F1B on slices of sequences, which hold a slice for each that a sequence is cut into (SlimPipe, arXiv 2504.14519).
schedule slimpipe(P: int >= 1 = 4, M: int >= 1 = 4, n: int >= P = P, V: int >= 1 = 1) {
  ranks P;
  microbatches M * n;
  slices n;
  placement loop(V);

  fn chunk(k) = k % (n * V) / n; // of the k-th slice that a rank runs

  on rank r {
    let total = M * n * V;
    let w = min(2 * (P - 1 - r) + n * V - 1, total);
    phase warmup   { for k in 0 .. w             { F(chunk(k)); } }
    phase steady   { for k in 0 .. total - w     { F(chunk(w + k)); B(V - 1 - chunk(k)); } }
    phase cooldown { for k in total - w .. total { B(V - 1 - chunk(k)); } }
  }
}
