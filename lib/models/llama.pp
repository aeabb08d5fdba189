// Llama 3 (arXiv 2407.21783, table 3): 405B; 70B is `layers=80 hidden=8192 ffn=28672 heads=64`, 8B `layers=32 hidden=4096 ffn=14336 heads=32`.
// Times at `tflops` per GPU of a tensor-parallel group.
model llama(layers: int >= 1 = 126, hidden: int >= 1 = 16384, ffn: int >= 1 = 53248, heads: int >= 1 = 128, kv: int >= 1 = 8,
            vocab: int >= 1 = 128256, tokens: int >= 1 = 8192, batch: int >= 1 = 1, tp: int >= 1 = 8, tflops: float >= 1 = 400) {
  units ms, bytes;
  require hidden % heads == 0, "each head has the same width";
  let n = 1.0 * batch * tokens;
  let ms = tp * tflops * 1e9;                                   // floating-point operations of a group in a ms
  let weights = 2.0 * hidden * hidden + 2.0 * hidden * hidden / heads * kv + 3.0 * hidden * ffn;
  let scores = 2.0 * n * tokens * hidden;                       // of causal attention: half of 4 n tokens hidden
  let held = 2.0 * n * (4.0 * hidden + 2.0 * hidden / heads * kv + 3.0 * ffn) / tp; // bf16 inputs of the matrix products, no scores
  layer E { static = 18.0 * vocab * hidden / tp; gives x[batch, tokens, hidden] bf16; }
  layer t {
    cost F = (2 * weights * n + scores) / ms;
    cost I = (2 * weights * n + 2 * scores) / ms;
    cost W = 2 * weights * n / ms;
    static = 18 * weights / tp; // weights, gradients and Adam in mixed precision
    memory F = held; memory B = -held; memory W = -held;
  }
  layer L {
    cost F = 2 * n * hidden * vocab / ms;
    cost I = 2 * n * hidden * vocab / ms;
    cost W = 2 * n * hidden * vocab / ms;
    static = 18.0 * vocab * hidden / tp;
  }
  layers E, t * layers, L;
}
