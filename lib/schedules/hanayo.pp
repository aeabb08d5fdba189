// Waves: the stages fold back at each end, P microbatches at a time (Hanayo, arXiv 2308.15762).
schedule hanayo(P: int >= 1 = 4, M: int >= 1 = P, V: int >= 1 = 2) {
  ranks P;
  microbatches M;
  placement wave(V);

  // Stage s runs microbatch m of its unit forward in slot s + 2 m, backward in slot 2 S - 1 - s + 2 m.
  fn hosted(c, r) = c * P + (c % 2 == 0 ? r : P - 1 - r);
  fn due(slots, n) = slots >= 0 and slots % 2 == 0 and slots / 2 < n;

  on rank r {
    for u in 0 .. (M + P - 1) / P {
      let S = P * V;
      let n = min(P, M - u * P);
      for t in 0 .. 2 * (S + n - 1) {
        for c in 0 .. V {
          if due(t - hosted(c, r), n)               { F(c); }
          if due(t - (2 * S - 1 - hosted(c, r)), n) { B(c); }
        }
      }
    }
  }
}
