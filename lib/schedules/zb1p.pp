// 1F1B, interleaved or not, with weight gradients in its bubbles (ZB-1P, arXiv 2401.10241).
import "interleaved_1f1b.pp";

schedule zb1p(P: int >= 1 = 4, M: int >= 1 = 8, V: int >= 1 = 1, G: int in 1 .. M + 1 = min(P, M)) {
  require deadlock_free(P - 2 - G, M, V, G),
    "ranks would wait in a cycle: G must be at least P / 2, and M % G either 0 or above P - 2 - G";
  ranks P;
  microbatches M;
  placement loop(V);

  // The chunk of the k-th virtual microbatch; the last group may be short.
  fn chunk(k) = k % (G * V) / min(G, M - k / (G * V) * G);

  on rank r {
    let total = M * V;
    let w = min(P - 1 - r + (V - 1) * G, total);
    phase warmup { for k in 0 .. w { F(chunk(k)); } }
    defer W lag r {
      phase steady   { for k in 0 .. total - w     { F(chunk(w + k)); B(V - 1 - chunk(k)); } }
      phase cooldown { for k in total - w .. total { B(V - 1 - chunk(k)); } }
    }
    drain W;
  }
}
