// Chimera with N pipes, half of them each way (arXiv 2107.06925).
schedule chimera_n(P: int >= 2 = 4, M: int >= P = P, N: int >= 2 = P % 4 == 0 ? 4 : 2) {
  require N % 2 == 0 and P % N == 0, "Chimera has N / 2 pairs of directions: N must be even and divide P";
  require M % P == 0, "Chimera runs whole units: M must be a multiple of P";
  ranks P;
  for i in 0 .. N / 2 {
    pipe down { stages P; stage s on rank (s + 2 * i * P / N) % P;         microbatches i * M / N .. (i + 1) * M / N; }
    pipe up   { stages P; stage s on rank (2 * i * P / N + P - 1 - s) % P; microbatches (N / 2 + i) * M / N .. (N / 2 + i + 1) * M / N; }
  }

  // Stage s runs microbatch m of its unit forward in slot s + 2 m, backward in slot 2 P - 1 - s + 2 m.
  fn due(slots) = slots >= 0 and slots % 2 == 0 and slots < 2 * P / N;

  on rank r {
    repeat M / P {
      for t in 0 .. 3 * P - 2 {
        for i in 0 .. N / 2 {
          let s = (r - 2 * i * P / N) % P; // the stage of `down`
          if due(t - s)               { F(down[i]); }
          if due(t - (P - 1 - s))     { F(up[i]); }
          if due(t - (2 * P - 1 - s)) { B(down[i]); }
          if due(t - (P + s))         { B(up[i]); }
        }
      }
    }
  }
}
