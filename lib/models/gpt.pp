// GPT-3 (arXiv 2005.14165, table 2.1: 96 layers of 12288, 2048 tokens).
// Times at `tflops` per GPU of a tensor-parallel group.
model gpt(layers: int = 96, hidden: int = 12288, tokens: int = 2048, batch: int = 1, vocab: int = 50257,
          tp: int = 8, tflops: float = 400.0) {
  units ms, bytes;
  require layers >= 1 and hidden >= 1 and tokens >= 1 and batch >= 1 and tp >= 1, "sizes begin at 1";
  let n = 1.0 * batch * tokens;
  let ms = tp * tflops * 1e9; // floating-point operations of a group in a ms
  let matmuls = 24.0 * n * hidden * hidden; // arXiv 2104.04473, appendix: forward of a layer
  let attention = 4.0 * n * tokens * hidden;
  layer E { static = 18.0 * vocab * hidden / tp; gives x[batch, tokens, hidden] bf16; }
  layer t {
    cost F = (matmuls + attention) / ms;
    cost I = (matmuls + 2 * attention) / ms;
    cost W = matmuls / ms;
    static = 18.0 * 12 * hidden * hidden / tp;  // weights, gradients and Adam in mixed precision: 18 bytes each
    memory F = 34.0 * n * hidden / tp;          // arXiv 2205.05198, equation 2, with sequence parallelism, no scores kept
    memory B = -34.0 * n * hidden / tp;
    memory W = -34.0 * n * hidden / tp;
  }
  layer L {
    cost F = 2.0 * n * hidden * vocab / ms;
    cost I = 2.0 * n * hidden * vocab / ms;
    cost W = 2.0 * n * hidden * vocab / ms;
    static = 18.0 * vocab * hidden / tp;
  }
  layers E, t * layers, L;
}
