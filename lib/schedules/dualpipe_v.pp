// DualPipe cut in half: its two directions are the arms of a V (github.com/deepseek-ai/DualPipe).
schedule dualpipe_v(P: int >= 1 = 4, M: int >= 2 * P = 2 * P) {
  ranks P;
  microbatches M;
  placement v;

  on rank r {
    let n = P - 1 - r; // distance to the turn of the V
    phase warmup {
      repeat 2 * n { F(0); }
      repeat r + 1 { F(0); F(1); }
      repeat n     { I(1); W; F(1); }
    }
    phase steady {
      for i in 0 .. M - 2 * P + r + 1 {
        if i == 0 and n == 0 { F(0); B(1); }
        else { overlap { F(0); B(1); } }
        overlap { F(1); B(0); }
      }
    }
    phase cooldown {
      repeat n { B(1); overlap { F(1); B(0); } }
      for i in 0 .. r + 1 { B((i + 1) % 2); }
      defer W { for i in r + 1 .. 2 * (r + 1) { B((i + 1) % 2); } }
      repeat n { W; I(0); }
      drain W;
    }
  }
}
