// DualPipe with the parts of its chunks: each all-to-all runs beside the computation of the other direction (arXiv 2412.19437).
schedule dualpipe_moe(P: int = 4, M: int = 2 * P, split_middle: bool = true, layers: int = 2) {
  require P >= 2 and P % 2 == 0, "DualPipe folds the pipeline in two: P must be even";
  require M % 2 == 0 and M >= 2 * P, "DualPipe needs an even M of at least 2 * P";
  require layers >= 0, "the number of layers cannot be negative";
  ranks P;
  pipe down { stages P; stage s on rank s;         microbatches 0 .. M / 2; }
  pipe up   { stages P; stage s on rank P - 1 - s; microbatches M / 2 .. M; }

  layer moe {
    F: attention @ comp -> dispatch @ comm -> mlp @ comp -> combine @ comm;
    B: combine @ comm -> mlp @ comp -> dispatch @ comm -> attention @ comp;
    B: mlp -> W.mlp @ comp;
    B: attention -> W.attention @ comp;
    I: combine @ comm -> mlp @ comp -> dispatch @ comm -> attention @ comp;
    W: mlp @ comp -> attention @ comp;
  }
  stage graph s {
    repeat layers { layer moe; }
    F: per layer;
    B: per layer down;
    I: per layer down;
    W: per layer down;
  }
  overlap (F, B) {
    per layer {
      B.combine; F.attention; B.mlp; F.dispatch; W.mlp; B.dispatch; F.mlp; F.combine; B.attention; W.attention;
    }
  }

  on rank r {
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
}
