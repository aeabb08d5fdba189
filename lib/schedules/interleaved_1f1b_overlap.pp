// Interleaved 1F1B whose forwards overlap backwards (Megatron-LM's combined 1F1B).
import "interleaved_1f1b.pp";

schedule interleaved_1f1b_overlap(P: int >= 1 = 4, M: int >= 1 = 8, V: int >= 1 = 2, G: int in 1 .. M + 1 = min(P, M),
                                  forward_only: bool = false) {
  require forward_only or deadlock_free(2 * P - 2 - G, M, V, G),
    "ranks would wait in a cycle: G must be at least P, and M % G either 0 or above 2 * P - 2 - G";
  ranks P;
  microbatches M;
  placement loop(V);
  backward when not forward_only;
  comm { calls ring; }

  // The chunk of the k-th virtual microbatch; the last group may be short.
  fn chunk(k) = k % (G * V) / min(G, M - k / (G * V) * G);

  on rank r {
    let total = M * V;
    let w = forward_only ? total : min(2 * (P - 1 - r) + (V - 1) * G + 1, total);
    phase warmup   { for k in 0 .. w         { F(chunk(k)); } }
    phase steady   { for k in 0 .. total - w { overlap { F(chunk(w + k)); B(V - 1 - chunk(k)); } } }
    phase cooldown { for k in total - w .. total { B(V - 1 - chunk(k)); } }
  }
}
