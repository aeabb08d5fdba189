// LLaVA-1.5 (arXiv 2310.03744): CLIP's ViT-L/14 at 336 px (arXiv 2103.00020, table 20) gives 576 tokens to Vicuna-13B (arXiv 2302.13971, table 2).
// Times at `tflops` per GPU of a tensor-parallel group.
model vision_text(depth: int >= 1 = 24, width: int >= 1 = 1024, patches: int >= 1 = 576, layers: int >= 1 = 40, hidden: int >= 1 = 5120,
                  ffn: int >= 1 = 13824, vocab: int >= 1 = 32000, tokens: int >= 1 = 2048, batch: int >= 1 = 1, tp: int >= 1 = 1,
                  tflops: float >= 1 = 300) {
  units ms, bytes;
  require patches <= tokens, "the text has the tokens of the image among its own";
  let ms = tp * tflops * 1e9;
  let p = 1.0 * batch * patches;
  let n = 1.0 * batch * tokens;
  let image = 12.0 * width * width;                             // weights of a layer, of the projector, and of a layer of text
  let projector = 1.0 * width * hidden + 1.0 * hidden * hidden;
  let text = 4.0 * hidden * hidden + 3.0 * hidden * ffn;
  let seen = 34.0 * p * width / tp;                             // arXiv 2205.05198, equation 2, no scores kept
  let read = 2.0 * n * (6.0 * hidden + 3.0 * ffn) / tp;
  layer v {
    cost F = (2 * p * image + 4 * p * patches * width) / ms;
    cost I = (2 * p * image + 8 * p * patches * width) / ms;
    cost W = 2 * p * image / ms;
    static = 18 * image / tp;
    memory F = seen; memory B = -seen; memory W = -seen;
    gives image[batch, patches, width] bf16;
  }
  layer P {
    cost F = 2 * p * projector / ms; cost I = 2 * p * projector / ms; cost W = 2 * p * projector / ms;
    static = 18 * projector / tp;
    gives image[batch, patches, hidden] bf16;
  }
  layer E { static = 18.0 * vocab * hidden / tp; gives x[batch, tokens, hidden] bf16; }
  layer t {
    cost F = (2 * n * text + 2 * n * tokens * hidden) / ms;
    cost I = (2 * n * text + 4 * n * tokens * hidden) / ms;
    cost W = 2 * n * text / ms;
    static = 18 * text / tp;
    memory F = read; memory B = -read; memory W = -read;
  }
  layer L {
    cost F = 2 * n * hidden * vocab / ms; cost I = 2 * n * hidden * vocab / ms; cost W = 2 * n * hidden * vocab / ms;
    static = 18.0 * vocab * hidden / tp;
  }
  part vision { layers v * depth, P by cost; }
  part text { layers E, t * layers, L by cost reads vision; }
}
