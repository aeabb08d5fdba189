// 1F1B over V chunks a rank, in groups of G microbatches (Megatron-LM, arXiv 2104.04473).

// The microbatches in a group after the first that may be too short: of any where G is at most `few`, else of the last one.
fn short(few, M, G) = G > max(few, 0) ? M % G : min(M - G, few);
// Whether no rank waits for itself. With two chunks, one microbatch too few does no harm. Exact for all P to 13 and V to 6.
fn deadlock_free(few, M, V, G) = short(few, M, G) * (V - 1) < 2 or short(few, M, G) > few;

schedule interleaved_1f1b(P: int >= 1 = 4, M: int >= 1 = 8, V: int >= 1 = 2, G: int in 1 .. M + 1 = min(P, M),
                          forward_only: bool = false, all_warmup: bool = false) {
  require all_warmup or forward_only or deadlock_free(2 * P - 3 - G, M, V, G),
    "ranks would wait in a cycle: G must be at least P - 1, and M % G either 0 or above 2 * P - 3 - G";
  ranks P;
  microbatches M;
  placement loop(V);
  backward when not forward_only;
  comm { calls ring; }

  // The chunk of the k-th virtual microbatch; the last group may be short.
  fn chunk(k) = k % (G * V) / min(G, M - k / (G * V) * G);

  on rank r {
    let total = M * V;
    let w = all_warmup or forward_only ? total : min(2 * (P - 1 - r) + (V - 1) * G, total);
    phase warmup   { for k in 0 .. w         { F(chunk(k)); } }
    phase steady   { for k in 0 .. total - w { F(chunk(w + k)); B(V - 1 - chunk(k)); } }
    phase cooldown { for k in total - w .. total { B(V - 1 - chunk(k)); } }
  }
}
