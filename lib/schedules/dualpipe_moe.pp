// DualPipe with the parts of its chunks: each all-to-all runs beside the computation of the other direction (arXiv 2412.19437).
import "dualpipe.pp";

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

  on rank r { both_ways(r, P, M, split_middle, down, up); }
}
