// V's in opposite directions, each in the others' bubbles (BitPipe, arXiv 2410.19367).
schedule bitpipe(P: int >= 2 = 4, M: int >= P = P, N: int >= 2 = 2) {
  require P % 2 == 0, "BitPipe pairs the ranks: P must be even";
  require N % 2 == 0 and P % N == 0, "BitPipe has N / 2 pairs of directions: N must be even and divide P";
  require M % P == 0, "BitPipe runs whole units: M must be a multiple of P";
  ranks P;
  fn depth(s) = min(s, 2 * P - 1 - s); // of stage s in its V
  for i in 0 .. N / 2 {
    pipe down {
      stages 2 * P; stage s on rank (depth(s) + 2 * i * P / N) % P;
      microbatches i * M / N .. (i + 1) * M / N;
    }
    pipe up {
      stages 2 * P; stage s on rank (2 * i * P / N + P - 1 - depth(s)) % P;
      microbatches (N / 2 + i) * M / N .. (N / 2 + i + 1) * M / N;
    }
  }

  // Stage s runs microbatch m of its unit forward in slot s + 2 m, backward in slot 4 P - 1 - s + 2 m.
  fn due(slots) = slots >= 0 and slots % 2 == 0 and slots < 2 * P / N;
  fn across(i, r) = (r - 2 * i * P / N) % P;
  fn start(p, r) = p < N / 2 ? across(p, r) : P - 1 - across(p - N / 2, r);

  on rank r {
    let hosted = [c % 2 == 0 ? start(c / 2, r) : 2 * P - 1 - start(c / 2, r) for c in 0 .. 2 * N];
    repeat M / P {
      for t in 0 .. 5 * P - 2 {
        for c in 0 .. 2 * N {
          if due(t - hosted[c])               { F(c); }
          if due(t - (4 * P - 1 - hosted[c])) { B(c); }
        }
      }
    }
  }
}
