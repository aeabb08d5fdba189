// The layers of Megatron-LM's combined 1F1B: the all-to-all of experts runs beside the computation of an overlapped action.
model megatron_moe(layers: int = 16, dense: int = 0, mtp: int = 0, delay_w: bool = false, early: bool = false) {
  require dense >= 0 and dense <= layers and mtp >= 0, "the dense layers are some of all; no number is negative";

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
  layer enter { F: recv @ comp -> pre_process @ comp; B: pre_process @ comp; B: send @ comp; }
  layer leave { F: send @ comm; B: recv @ comp; }
  layer post  { F: post_process @ comp -> loss @ comp; B: loss @ comp -> post_process @ comp; }

  layers enter, plain * dense, moe * (layers - dense), prediction * mtp, post by plain, moe between leave, enter;

  overlap F, B {
    B.loss; F.recv; F.pre_process; B.recv; B.post_process;
    each moe, plain, prediction {
      B.mtp_post; B.combine; F.pre_dispatch; B.mlp; F.dispatch; W.mlp; B.dispatch;
      if early { B.pre_dispatch; }
      F.mlp; F.combine;
      if not early { B.pre_dispatch; }
      F.mtp_post; W.pre_dispatch;
    }
    F.send; B.send; last W.pre_dispatch;
    F.post_process; B.pre_process; F.loss;
  }
}
