// One forward, one backward (PipeDream-flush, arXiv 2006.09503; Megatron-LM). Alias: 1f1b.
schedule one_f_one_b(P: int >= 1 = 4, M: int >= 1 = 8, forward_only: bool = false) {
  ranks P;
  microbatches M;
  placement linear;
  backward when not forward_only;

  on rank r {
    let w = forward_only ? M : min(P - 1 - r, M);
    phase warmup   { repeat w     { F; } }
    phase steady   { repeat M - w { F; B; } }
    phase cooldown { repeat w { B; } }
  }
}
