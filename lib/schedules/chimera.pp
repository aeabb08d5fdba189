// Two pipes in opposite directions, each in the other's bubbles (Chimera, arXiv 2107.06925).
schedule chimera(P: int >= 2 = 4, M: int >= P = P) {
  require P % 2 == 0, "Chimera pairs the ranks: P must be even";
  require M % P == 0, "Chimera runs whole units: M must be a multiple of P";
  ranks P;
  pipe down { stages P; stage s on rank s;         microbatches 0 .. M / 2; }
  pipe up   { stages P; stage s on rank P - 1 - s; microbatches M / 2 .. M; }

  // Stage s runs microbatch m of its unit forward in slot s + 2 m, backward in slot 2 P - 1 - s + 2 m.
  fn due(slots) = slots >= 0 and slots % 2 == 0 and slots < P;

  on rank r {
    repeat M / P {
      for t in 0 .. 3 * P - 2 {
        if due(t - r)               { F(down); }
        if due(t - (P - 1 - r))     { F(up); }
        if due(t - (2 * P - 1 - r)) { B(down); }
        if due(t - (P + r))         { B(up); }
      }
    }
  }
}
