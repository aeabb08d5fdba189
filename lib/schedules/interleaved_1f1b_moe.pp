// Interleaved 1F1B; the all-to-all of experts runs beside the computation of an overlapped action (Megatron-LM's combined 1F1B).
import "interleaved_1f1b.pp";

schedule interleaved_1f1b_moe(P: int = 4, M: int = 8, V: int = 2, G: int = min(P, M), layers: int = 2,
                              delay_w: bool = false, early: bool = false, dense: int = 0, mtp: int = 0) {
  require P >= 1 and M >= 1 and V >= 1, "needs a rank, a microbatch and a chunk";
  require G >= 1 and G <= M, "the group size G must lie in 1..M";
  require flows(2 * P - 2 - G, M, V, G),
    "ranks would wait in a circle: G must be at least P, and M % G either 0 or above 2 * P - 2 - G";
  require layers >= 0 and dense >= 0 and mtp >= 0, "numbers of layers cannot be negative";
  ranks P;
  microbatches M;
  placement loop(V);
  comm { calls ring; }

  layer moe {
    F: pre_dispatch @ comp -> dispatch @ comm -> mlp @ comp -> combine @ comm;
    B: combine @ comm -> mlp @ comp -> dispatch @ comm -> pre_dispatch @ comp;
    if delay_w { B: mlp -> W.mlp @ comp; B: pre_dispatch -> W.pre_dispatch @ comp; }
  }
  layer plain {
    F: pre_dispatch @ comp -> mlp @ comp;
    B: mlp @ comp -> pre_dispatch @ comp;
    if delay_w { B: mlp -> W.mlp @ comp; B: pre_dispatch -> W.pre_dispatch @ comp; }
  }
  layer prediction { // of a token further ahead
    F: pre_dispatch @ comp -> dispatch @ comm -> mlp @ comp -> combine @ comm -> mtp_post @ comp;
    B: mtp_post @ comp -> combine @ comm -> mlp @ comp -> dispatch @ comm -> pre_dispatch @ comp;
    if delay_w { B: mlp -> W.mlp @ comp; B: pre_dispatch -> W.pre_dispatch @ comp; }
  }
  stage graph s {
    for i in 0 .. layers {
      if s * layers + i < dense { layer plain; } else { layer moe; }
    }
    F: recv @ comp -> pre_process @ comp -> per layer;
    if s < P * V - 1 {
      F: per layer -> send @ comm;
      B: recv @ comp -> per layer down -> pre_process @ comp;
    } else {
      repeat mtp { layer prediction; }
      F: per layer -> post_process @ comp -> loss @ comp;
      B: loss @ comp -> post_process @ comp -> per layer down -> pre_process @ comp;
    }
    B: per layer down -> send @ comp;
  }
  overlap (F, B) {
    B.loss; F.recv; F.pre_process; B.recv; B.post_process;
    per layer {
      B.mtp_post; B.combine; F.pre_dispatch; B.mlp; F.dispatch; W.mlp; B.dispatch;
      if early { B.pre_dispatch; }
      F.mlp; F.combine;
      if not early { B.pre_dispatch; }
      F.mtp_post; W.pre_dispatch;
    }
    F.send; B.send; last W.pre_dispatch;
    F.post_process; B.pre_process; F.loss;
  }

  // The chunk of the k-th virtual microbatch; the last group may be short.
  fn chunk(k) = k % (G * V) / min(G, M - k / (G * V) * G);

  on rank r {
    let total = M * V;
    let w = min(2 * (P - 1 - r) + (V - 1) * G + 1, total);
    phase warmup   { for k in 0 .. w         { F(chunk(k)); } }
    phase steady   { for k in 0 .. total - w { overlap { F(chunk(w + k)); B(V - 1 - chunk(k)); } } }
    phase cooldown { for k in total - w .. total { B(V - 1 - chunk(k)); } }
  }
}
