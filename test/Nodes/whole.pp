// Layers with costs and without nodes have a place in every pattern: where the action comes to them.
// RUN: ppcc %s --model gpt_moe --emit=nodes | FileCheck %s
// CHECK: rank 0: {compute:0F0.E compute:0F0.L0.attention network:0F0.L0.dispatch compute:0F0.L0.mlp network:0F0.L0.combine compute:0F0.L}
// CHECK-SAME: {compute:0F1.E compute:0B0.L network:0B0.L0.combine compute:0F1.L0.attention
// CHECK-SAME: compute:0B0.L0.attention compute:0F1.L compute:0B0.E}
model gpt_moe(layers: int = 1) {
  layer E { cost F = 0.3; cost B = 0.2; static = 1.2e9; }
  layer t {
    F: attention @ compute -> dispatch @ network -> mlp @ compute -> combine @ network;
    B: combine @ network -> mlp @ compute -> dispatch @ network -> attention @ compute;
    W: mlp @ compute -> attention @ compute;
    cost F.attention = 0.4; cost F.mlp = 0.5; cost F.dispatch = 0.2;
    gives x[4096, 4096] bf16;
  }
  layer L { cost F = 0.8; cost B = 1.6; }
  layers E, t * layers, L;
  overlap F, B { each t { B.combine; F.attention; B.mlp; F.dispatch; B.dispatch; F.mlp; F.combine; B.attention; } }
}
schedule s() {
  ranks 1; microbatches 2; placement linear;
  on rank r { F; overlap { F; B; } B; }
}
