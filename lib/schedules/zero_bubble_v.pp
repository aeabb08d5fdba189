// No bubble with 1F1B's memory, on a V of two chunks a rank (ZB-V, arXiv 2405.15362). Alias: zbv, ZBVZeroBubble.
schedule zero_bubble_v(P: int >= 1 = 4, M: int >= 1 = 8) {
  ranks P;
  microbatches M pad max(2 * P - 1, M);
  placement v;

  on rank r {
    phase warmup {
      repeat 2 * (P - r) - 1 { F(0); }
      repeat r               { F(1); F(0); }
      repeat P - r           { F(1); I(1); W; }
    }
    phase steady {
      while issued(F, 1) < issued(F, 0) or issued(F, 0) < padded {
        if issued(F, 0) < padded { F(0); }
        I(0); W; F(1); I(1); W;
      }
    }
    phase cooldown {
      repeat r     { I(0); I(1); }
      repeat P - r { I(0); W(0); }
      drain W(1);
      drain W(0);
    }
  }
}
