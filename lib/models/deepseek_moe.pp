// DeepSeek-V3's layers under DualPipe: each all-to-all runs beside the computation of the other direction (arXiv 2412.19437).
model deepseek_moe(layers: int = 61) {
  layer moe {
    F: attention @ comp -> dispatch @ comm -> mlp @ comp -> combine @ comm;
    B: combine @ comm -> mlp @ comp -> dispatch @ comm -> attention @ comp;
    B: mlp -> W.mlp @ comp;
    B: attention -> W.attention @ comp;
    I: combine @ comm -> mlp @ comp -> dispatch @ comm -> attention @ comp;
    W: mlp @ comp -> attention @ comp;
  }
  layers moe * layers;
  overlap F, B {
    each moe {
      B.combine; F.attention; B.mlp; F.dispatch; W.mlp; B.dispatch; F.mlp; F.combine; B.attention; W.attention;
    }
  }
}
