// T5 (arXiv 1910.10683, section 3.7): 11B; 3B is `ffn=16384 heads=32`, Base `layers=12 hidden=768 ffn=3072 heads=12 width=64`.
// A decoder reads the encoder's output; times in ms at `tflops` per GPU of a tensor-parallel group, memory in bytes.
model t5(layers: int >= 1 = 24, hidden: int >= 1 = 1024, ffn: int >= 1 = 65536, heads: int >= 1 = 128, width: int >= 1 = 128,
         vocab: int >= 1 = 32128, tokens: int >= 1 = 512, targets: int >= 1 = 114, batch: int >= 1 = 8, tp: int >= 1 = 1,
         tflops: float >= 1 = 300) {
  units ms, bytes;
  let ms = tp * tflops * 1e9;
  let n = 1.0 * batch * tokens;                                 // of the encoder, and m of the decoder
  let m = 1.0 * batch * targets;
  let attention = 4.0 * hidden * heads * width;                 // weights of q, k, v and the output
  let mlp = 2.0 * hidden * ffn;
  let whole = 4.0 * heads * width;                              // operations for each pair of tokens
  let encoded = 2.0 * n * (4.0 * heads * width + 2.0 * hidden + ffn) / tp;
  let decoded = 2.0 * m * (6.0 * heads * width + 3.0 * hidden + ffn) / tp + 4.0 * n * heads * width / tp;
  layer E { static = 18.0 * vocab * hidden / tp; gives x[batch, tokens, hidden] bf16; }
  layer e {
    cost F = (2 * n * (attention + mlp) + whole * n * tokens) / ms;
    cost I = (2 * n * (attention + mlp) + 2 * whole * n * tokens) / ms;
    cost W = 2 * n * (attention + mlp) / ms;
    static = 18 * (attention + mlp) / tp;
    memory F = encoded; memory B = -encoded; memory W = -encoded;
  }
  layer D { static = 18.0 * vocab * hidden / tp; gives x[batch, tokens, hidden] bf16, y[batch, targets, hidden] bf16; }
  layer d { // attends to itself, and to what the encoder gave
    cost F = (2 * m * (1.5 * attention + mlp) + n * attention + whole * m * (targets + tokens)) / ms;
    cost I = (2 * m * (1.5 * attention + mlp) + n * attention + 2 * whole * m * (targets + tokens)) / ms;
    cost W = (2 * m * (1.5 * attention + mlp) + n * attention) / ms;
    static = 18 * (2 * attention + mlp) / tp;
    memory F = decoded; memory B = -decoded; memory W = -decoded;
  }
  layer L {
    cost F = 2 * m * hidden * vocab / ms;
    cost I = 2 * m * hidden * vocab / ms;
    cost W = 2 * m * hidden * vocab / ms;
  }
  part encoder { layers E, e * layers by cost; }
  part decoder { layers D, d * layers, L by cost reads encoder; }
}
