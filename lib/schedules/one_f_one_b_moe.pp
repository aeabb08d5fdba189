// 1F1B on one rank; the all-to-all of experts runs beside the computation of an overlapped action (Megatron-LM's combined 1F1B).
schedule one_f_one_b_moe(M: int = 4, layers: int = 2, delay_w: bool = false, early: bool = false,
                         dense: int = 0, mtp: int = 0) {
  require M >= 1, "needs a microbatch";
  require layers >= 0 and dense >= 0 and mtp >= 0, "numbers of layers cannot be negative";
  ranks 1;
  microbatches M;
  placement linear;

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
    F: pre_process @ comp -> per layer;
    repeat mtp { layer prediction; }
    F: per layer -> post_process @ comp -> loss @ comp;
    B: loss @ comp -> post_process @ comp -> per layer down -> pre_process @ comp;
  }
  overlap (F, B) {
    B.loss; F.pre_process; B.post_process;
    per layer {
      B.mtp_post; B.combine; F.pre_dispatch; B.mlp; F.dispatch; W.mlp; B.dispatch;
      if early { B.pre_dispatch; }
      F.mlp; F.combine;
      if not early { B.pre_dispatch; }
      F.mtp_post; W.pre_dispatch;
    }
    last W.pre_dispatch; // behind the send of the gradient
    F.post_process; B.pre_process; F.loss;
  }

  on rank r {
    phase warmup   { F; }
    phase steady   { repeat M - 1 { overlap { F; B; } } }
    phase cooldown { B; }
  }
}
