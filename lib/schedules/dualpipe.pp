// Two pipes in opposite directions, forwards overlapped by backwards (DualPipe, arXiv 2412.19437).

// What rank r runs; it takes part in both pipes.
block both_ways(r, P, M, split_middle: bool, down: pipe, up: pipe) {
  let h    = min(r, P - 1 - r);         // distance to the nearer end
  let n    = P / 2 - 1 - h;             // distance to the middle
  let near = r < P / 2 ? down : up;     // the pipe that enters on this side
  let far  = r < P / 2 ? up : down;

  phase warmup {
    repeat 2 * n { F(near); }
    repeat h + 1 { F(near); F(far); }
    repeat n     { I(far); W; F(far); }
  }
  phase steady {
    for i in 0 .. M / 2 - P + h + 1 {
      if split_middle and i == 0 and n == 0 { F(near); B(far); }
      else { overlap { F(near); B(far); } }
      overlap { F(far); B(near); }
    }
  }
  phase cooldown {
    repeat n { B(far); overlap { F(far); B(near); } }
    for i in 0 .. h + 1 { B(i % 2 == 0 ? far : near); }
    defer W { for i in h + 1 .. 2 * (h + 1) { B(i % 2 == 0 ? far : near); } }
    repeat n { W; I(near); }
    drain W;
  }
}

schedule dualpipe(P: int >= 2 = 4, M: int >= 2 * P = 2 * P, split_middle: bool = true) {
  require P % 2 == 0, "DualPipe folds the pipeline in two: P must be even";
  require M % 2 == 0, "DualPipe gives each direction half of the microbatches: M must be even";
  ranks P;
  pipe down { stages P; stage s on rank s;         microbatches 0 .. M / 2; }
  pipe up   { stages P; stage s on rank P - 1 - s; microbatches M / 2 .. M; }

  on rank r { both_ways(r, P, M, split_middle, down, up); }
}
